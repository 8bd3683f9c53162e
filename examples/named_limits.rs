//! A partner allows three calls at once for each account, whatever task or queue makes them: a limit that bodies name.
//!
//! ```sh
//! cargo run --example named_limits
//! ```

use std::time::{Duration, Instant};

use flexiq::{Context, Queue, Retry};

/// Sends an invoice through the partner.
#[flexiq::task(queue = "invoices")]
async fn send_invoice(
    #[context] context: Context,
    #[state] begun: Instant,
    account: String,
) -> Result<(), Retry> {
    call_partner(&context, begun, "invoice", &account).await
}

/// Looks up a balance at the same partner.
#[flexiq::task(queue = "balances")]
async fn fetch_balance(
    #[context] context: Context,
    #[state] begun: Instant,
    account: String,
) -> Result<(), Retry> {
    call_partner(&context, begun, "balance", &account).await
}

async fn call_partner(context: &Context, begun: Instant, what: &str, account: &str) -> Result<(), Retry> {
    // Without a permit the job stands in line and its slot is free; it is called when its turn comes.
    let _permit = context.limit("partner-api").key(account).concurrency(3).acquire().await?;
    println!("{:>4} ms  {what} for {account}", begun.elapsed().as_millis());
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let queue = Queue::open("sqlite::memory:").await?;
    for _ in 0..4 {
        enqueue_send_invoice(&queue, "acme".into()).await?;
        enqueue_fetch_balance(&queue, "acme".into()).await?;
    }
    enqueue_fetch_balance(&queue, "brick".into()).await?; // another key, another limit: at once
    queue.worker().state(Instant::now()).run_until_idle().await
}
