//! A job says how far it is, and logs a few lines; whoever has its id watches.
//!
//! ```sh
//! cargo run --example progress
//! ```

use std::time::Duration;

use flexiq::{Context, Queue, State};

/// Fetches pages, 50 ms each.
#[flexiq::task]
async fn fetch(#[context] context: Context, pages: u64) {
    context.log(format!("{pages} pages to fetch"));
    for page in 1..=pages {
        tokio::time::sleep(Duration::from_millis(50)).await;
        context.progress(page, pages, format!("page {page}")); // costs no call: the newest is sent now and then
    }
    context.log("all fetched");
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let queue = Queue::open("sqlite::memory:").await?;
    let job = enqueue_fetch(&queue, 30).await?;
    let worker = queue.worker().start().await?;

    loop {
        let status = job.status().await?;
        match &status.progress {
            Some(progress) => {
                let (done, total) = (progress.done, progress.total.unwrap_or(progress.done));
                let bar = "#".repeat(done as usize);
                println!("{:<10} {bar:<30} {done:>2}/{total} {}", status.state.to_string(), progress.message);
            }
            None => println!("{:<10} nothing told yet", status.state.to_string()),
        }
        if status.state == State::Succeeded {
            break;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    for line in job.story().await?.log {
        println!("log of run {}: {}", line.run, line.message);
    }
    worker.shutdown().await
}
