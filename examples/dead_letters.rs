//! A job dies, tells its story, is retried by hand once its cause is mended, and keeps what it told.
//!
//! ```sh
//! cargo run --example dead_letters
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flexiq::{Context, Queue, Story};

/// Charges a customer at a partner who is down at first.
#[flexiq::task(max_retries = 2, retry_backoff = "fixed 50ms")]
async fn charge(
    #[context] context: Context,
    #[state] partner: Partner,
    customer: String,
) -> Result<String, String> {
    context.log(format!("attempt {} for {customer}", context.attempt()));
    if context.attempt() == 2 {
        panic!("the partner answered what nobody expected");
    }
    if partner.is_up.load(Ordering::Relaxed) { Ok("charged".into()) } else { Err("no answer".into()) }
}

#[derive(Clone, Default)]
struct Partner {
    is_up: Arc<AtomicBool>,
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    std::panic::set_hook(Box::new(|_| {})); // a panic is a failure like others: its message is in the story
    let (queue, partner) = (Queue::open("sqlite::memory:").await?, Partner::default());
    let job = enqueue_charge(&queue, "acme".into()).await?;
    let worker = queue.worker().state(partner.clone()).start().await?;

    match job.result().await {
        Err(error) => println!("{error}\n"),
        Ok(value) => println!("{value}: the partner was up after all\n"),
    }
    tell(&job.story().await?);

    partner.is_up.store(true, Ordering::Relaxed);
    println!("\nretried by hand: {}", queue.retry(job.id()).await?);
    println!("{}: {} setbacks are kept\n", job.result().await?, job.story().await?.setbacks.len());

    partner.is_up.store(false, Ordering::Relaxed);
    let hopeless = enqueue_charge(&queue, "nobody".into()).max_retries(0).await?;
    if let Err(error) = hopeless.result().await {
        println!("{error}");
    }
    println!("deleted: {}", queue.delete(hopeless.id()).await?);
    worker.shutdown().await
}

/// What runs logged and how they failed, in the order in which it happened.
fn tell(story: &Story) {
    let log = story.log.iter().map(|line| (line.at, line.run, format!("log: {}", line.message)));
    let setbacks = story.setbacks.iter().map(|setback| {
        let death = setback.death.map(|reason| format!(" (dead: {reason})")).unwrap_or_default();
        (setback.at, setback.run, format!("{:?}: {}{death}", setback.kind, setback.message))
    });
    let mut all: Vec<_> = log.chain(setbacks).collect();
    all.sort_by_key(|(at, run, _)| (*run, *at));
    for (_, run, words) in all {
        println!("run {run}  {words}");
    }
}
