//! How tasks are tested: a queue in memory and a clock that the test moves, so that an hour takes no time.
//!
//! ```sh
//! cargo run --example testing              # shows what a test sees
//! cargo test -p flexiq-examples --example testing
//! ```

use std::time::{Duration, Instant};

use flexiq::testing::{TestQueue, assert_enqueued};
use flexiq::{Context, Queue, Retry};

/// A partner's service, or what stands for it in a test.
#[derive(Clone)]
struct Partner {
    is_up: bool,
}

/// Tells the partner of an order; two a minute are allowed. The partner asks for patience at first.
#[flexiq::task(queue = "orders", rate_limit = "2/m", max_retries = 3, retry_backoff = "fixed 30s")]
async fn announce(
    #[context] context: Context,
    #[state] partner: Partner,
    order: u32,
    #[secret] _token: String,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if context.deferrals() == 0 {
        return Err(Retry::after(Duration::from_secs(600)).into());
    }
    if !partner.is_up {
        return Err("the partner is down".into());
    }
    println!("order {order} is announced");
    Ok(())
}

/// The code that is tested.
async fn buy(queue: &Queue, order: u32) -> flexiq::Result<()> {
    enqueue_announce(queue, order, "hunter2".into()).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let begun = Instant::now();
    let test = TestQueue::builder().state(Partner { is_up: true }).await;
    for order in 1..=3 {
        buy(test.queue(), order).await?;
    }
    assert_enqueued!(test, 3 of announce);
    assert_enqueued!(test, announce, order == 2);

    println!("At once: {}\n", test.drain().await);
    let told = test.advance(Duration::from_secs(60 * 60)).await.expect_all_succeeded();
    println!("\nWithin an hour, which took {:?}: {told}", begun.elapsed());
    Ok(())
}

#[cfg(test)]
mod tests {
    use flexiq::DeadReason;
    use flexiq::testing::End;

    use super::*;

    #[tokio::test]
    async fn an_order_is_announced_after_ten_minutes() {
        let test = TestQueue::builder().state(Partner { is_up: true }).await;
        buy(test.queue(), 7).await.expect("it is stored");
        assert_eq!(test.drain().await.deferred(), 1);
        assert_eq!(test.advance(Duration::from_secs(599)).await.succeeded(), 0);
        assert_eq!(test.advance(Duration::from_secs(1)).await.succeeded(), 1);
    }

    #[tokio::test]
    async fn a_partner_that_stays_down_ends_the_job_as_dead() {
        let test = TestQueue::builder().state(Partner { is_up: false }).await;
        buy(test.queue(), 7).await.expect("it is stored");
        let told = test.advance(Duration::from_secs(60 * 60)).await;
        let last = told.runs.last().map(|run| &run.end);
        assert!(matches!(last, Some(End::Dead { reason: DeadReason::Failures, .. })), "{told}");
        assert_eq!(told.failed(), 4, "three retries");
    }
}
