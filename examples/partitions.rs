//! One customer's flood does not delay the others: each has its own share of a task, and they take turns.
//!
//! ```sh
//! cargo run --example partitions
//! ```

use std::time::{Duration, Instant};

use flexiq::Queue;

/// Exports one table of an account: two at once for each account, six in all.
#[flexiq::task(partition_by = account, max_concurrent_per_partition = 2, max_concurrent = 6)]
async fn export(#[state] begun: Instant, account: String, table: u32) {
    println!("{:>4} ms  {account:<6} table {table}", begun.elapsed().as_millis());
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let queue = Queue::open("sqlite::memory:").await?;
    // Acme comes first, with twelve; the others with two each.
    queue.enqueue_many((1..=12).map(|table| enqueue_export(&queue, "acme".into(), table))).await?;
    for account in ["brick", "coal"] {
        queue.enqueue_many((1..=2).map(|table| enqueue_export(&queue, account.into(), table))).await?;
    }
    // Acme pays for more: at runtime, and for acme alone.
    queue.set_partition_concurrency("export", "acme", 4).await?;
    queue.worker().state(Instant::now()).run_until_idle().await
}
