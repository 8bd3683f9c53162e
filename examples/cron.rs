//! Two workers and three schedules for five seconds: a task's own cron, one that was set at runtime, and one by hand.
//!
//! ```sh
//! cargo run --example cron
//! ```

use std::time::{Duration, Instant};

use flexiq::Queue;

/// Looks after something every other second. Six fields: seconds come first.
#[flexiq::task(cron = "*/2 * * * * *")]
async fn sweep(#[state] begun: Instant, #[default = "everything".into()] what: String) {
    println!("{:>4} ms  sweeps {what}", begun.elapsed().as_millis());
}

/// Builds a report; who wants one, and when, is known at runtime.
#[flexiq::task(queue = "reports")]
async fn build_report(#[state] begun: Instant, account: String) {
    println!("{:>4} ms  builds the report of {account}", begun.elapsed().as_millis());
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let queue = Queue::open("sqlite::memory:").await?;
    let every_second = enqueue_build_report(&queue, "acme".into());
    queue.schedule("report-of-acme", "* * * * * *", "Europe/Stockholm", every_second).await?;
    let yearly = enqueue_build_report(&queue, "brick".into());
    queue.schedule("report-of-brick", "0 7 1 1 *", "Europe/Stockholm", yearly).await?;

    // However many workers there are, each tick makes one job.
    let builder = queue.worker().state(Instant::now());
    let workers = [builder.clone().start().await?, builder.start().await?];
    queue.run_schedule_now("report-of-brick").await?; // nobody waits for New Year
    tokio::time::sleep(Duration::from_secs(3)).await;
    queue.pause_schedule("report-of-acme").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    for schedule in queue.schedules().await? {
        let state = if schedule.is_paused { "paused" } else { "ticks" };
        println!("{:<16} {:<14} {state:<7} {}", schedule.name, schedule.cron, schedule.task);
    }
    for worker in workers {
        worker.shutdown().await?;
    }
    Ok(())
}
