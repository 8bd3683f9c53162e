//! A first look, with nothing to install: four jobs on a store in memory, and what becomes of them.
//!
//! ```sh
//! cargo run --example quickstart
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flexiq::{Context, Queue, Retry};

// ANCHOR: tasks
/// Sends an email. It returns nothing, so it cannot fail.
#[flexiq::task]
async fn send_email(to: String) {
    println!("send_email    to {to}: sent");
}

/// Renders a report. A cold renderer is a deferral: the slot is free meanwhile, and no try is spent.
#[flexiq::task(queue = "reports")]
async fn build_report(#[state] renderer: Renderer, month: String) -> Result<String, Retry> {
    if !renderer.is_warm() {
        println!("build_report  {month}: deferred for 200 ms, the renderer is cold");
        return Err(Retry::after(Duration::from_millis(200)));
    }
    println!("build_report  {month}: rendered");
    Ok(format!("the report of {month}"))
}

/// Charges an order. An error is a failure: the job is tried again after a back-off.
#[flexiq::task(retry_backoff = "fixed 100ms")]
async fn charge(#[context] context: Context, order: u32) -> Result<(), String> {
    if context.attempt() == 1 {
        println!("charge        order {order}, attempt 1: the bank does not answer");
        return Err("the bank does not answer".into());
    }
    println!("charge        order {order}, attempt {}: charged", context.attempt());
    Ok(())
}

/// Counts the lines of a file: a plain function, on a thread of its own. No retry brings a missing file back.
#[flexiq::task]
fn count_lines(file: String) -> Result<usize, Retry> {
    println!("count_lines   {file}: reading");
    let text = std::fs::read_to_string(file).map_err(Retry::never)?;
    Ok(text.lines().count())
}
// ANCHOR_END: tasks

/// A renderer that is warm when it is looked at for the second time.
#[derive(Clone, Default)]
struct Renderer {
    looks: Arc<AtomicU32>,
}

impl Renderer {
    fn is_warm(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) > 0
    }
}

// ANCHOR: main
#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let queue = Queue::open("sqlite::memory:").await?;

    let in_a_while = Duration::from_millis(300);
    let email = enqueue_send_email(&queue, "ada@example.org".into()).delay(in_a_while).await?;
    let report = enqueue_build_report(&queue, "2026-10".into()).await?;
    let charge = enqueue_charge(&queue, 7).await?;
    let lines = enqueue_count_lines(&queue, "missing.txt".into()).await?;

    queue.worker().state(Renderer::default()).run_until_idle().await?;

    let value: String = report.result().await?; // typed by the function's return type
    println!("\nbuild_report returned {value:?}");
    if let Err(story) = lines.result().await {
        println!("{story}");
    }

    println!("\ntask          state      runs  failures  deferrals");
    let jobs = [email.status().await?, report.status().await?, charge.status().await?, lines.status().await?];
    for job in jobs {
        let state = job.state.to_string();
        println!("{:<13} {state:<10} {:>4} {:>9} {:>10}", job.task, job.runs, job.failures, job.deferrals);
    }
    Ok(())
}
// ANCHOR_END: main
