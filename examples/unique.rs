//! One job where there would be many: unique keys, debounce and throttle.
//!
//! ```sh
//! cargo run --example unique
//! ```

use std::time::Duration;

use flexiq::{Error, Queue};

/// Builds the report of a month: never twice at once.
#[flexiq::task(unique = "args")]
async fn build_report(month: String) {
    println!("  builds the report of {month}");
}

/// Brings the search index up to date with a document.
#[flexiq::task(unique_by = document)]
async fn index(document: u64, text: String) {
    println!("  indexes document {document}: {text:?}");
}

/// Says that something is wrong.
#[flexiq::task]
async fn alert(what: String) {
    println!("  alerts: {what}");
}

#[tokio::main]
async fn main() -> flexiq::Result<()> {
    let queue = Queue::open("sqlite::memory:").await?;

    println!("three calls for one month:");
    for _ in 0..3 {
        let job = enqueue_build_report(&queue, "2026-10".into()).await?;
        println!("  job …{}, a duplicate: {}", tail(&job.id().to_string()), job.is_duplicate());
    }

    println!("someone types, and the index waits for 300 ms of quiet:");
    for text in ["d", "dr", "draft"] {
        enqueue_index(&queue, 7, text.into()).debounce(Duration::from_millis(300)).await?;
    }

    println!("everything fails at once, and one alert a minute is enough:");
    for number in 1..=100 {
        enqueue_alert(&queue, format!("failure {number}")).throttle(Duration::from_secs(60)).await?;
    }
    queue.worker().run_until_idle().await?;

    println!("its job has ended, and the month may be built again:");
    let again = enqueue_build_report(&queue, "2026-10".into()).await?;
    again.cancel().await?;
    let next = enqueue_build_report(&queue, "2026-10".into()).await?;
    match queue.retry(again.id()).await {
        Err(error @ Error::KeyTaken { .. }) => println!("  the cancelled one cannot come back: {error}"),
        other => println!("  {other:?}"),
    }
    next.cancel().await?;
    Ok(())
}

fn tail(id: &str) -> &str {
    &id[id.len() - 4..]
}
