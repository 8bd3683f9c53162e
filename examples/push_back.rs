//! A partner says "429, wait": the first job that hears it holds the whole task, and is the first to start again.
//!
//! ```sh
//! cargo run --example push_back
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use flexiq::{Context, Queue, Retry};

/// Notifies a partner that takes three calls, and then none for half a second.
#[flexiq::task(max_in_flight_per_task = 1)]
async fn notify(#[context] context: Context, #[state] partner: Partner, number: u32) -> Result<(), Retry> {
    match partner.call() {
        Ok(()) => println!("{:>4} ms  {number}: told", partner.begun.elapsed().as_millis()),
        Err(retry_after) => {
            println!("{:>4} ms  {number}: 429, wait {retry_after:?}", partner.begun.elapsed().as_millis());
            return Err(context.hold_task(retry_after)); // a deferral: the slot is free, no try is spent
        }
    }
    Ok(())
}

#[derive(Clone)]
struct Partner {
    begun: Instant,
    calls: Arc<AtomicU32>,
}

impl Partner {
    fn call(&self) -> Result<(), Duration> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if call == 3 { Err(Duration::from_millis(500)) } else { Ok(()) }
    }
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let queue = Queue::open("sqlite::memory:").await?;
    queue.enqueue_many((1..=6).map(|number| enqueue_notify(&queue, number))).await?;
    let partner = Partner { begun: Instant::now(), calls: Arc::default() };
    queue.worker().state(partner).run_until_idle().await
}
