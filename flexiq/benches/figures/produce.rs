//! What storing jobs in Redis costs: from many tasks at once, in bulk, one at a time, and in memory.

use std::time::{Duration, Instant};

use flexiq::Queue;

use crate::figure::{Figure, Reach, median};
use crate::raw::Raw;
use crate::redis_server::Server;

const PRODUCERS: usize = 64;
const JOBS: usize = 64_000;
const BULK: usize = 1_000;
const WAITING: usize = 100_000;
/// Bytes that the body of a waiting job has in the store, beside its id.
const BODY: usize = 119;

#[flexiq::task(queue = "produce")]
async fn stored(_padding: String) {}

/// Many tasks share one handle, and each awaits its job before the next.
pub(crate) fn from_many_tasks() -> flexiq::Result<Vec<Figure>> {
    let (mut ours, mut raw, mut round_trips) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..crate::runs(5) {
        let server = Server::start();
        crate::runtime().block_on(async {
            let bare = Raw::open(&server).await;
            raw.push(JOBS as f64 / bare.push_each(PRODUCERS, JOBS, &[b'x'; 100]).await.as_secs_f64());
            let before = bare.usage().await;
            ours.push(JOBS as f64 / enqueue_each(&server).await?.as_secs_f64());
            round_trips.push(bare.usage().await.since(&before).sent() / JOBS as f64);
            Ok::<(), flexiq::Error>(())
        })?;
    }
    Ok(vec![
        Figure {
            name: "enqueue with 64 producers on one handle, Redis".into(),
            value: median(&ours),
            unit: "jobs/s",
            yardstick: Some(median(&raw)),
            reach: Reach::AtLeast(0.2),
        },
        Figure {
            name: "round trips per job enqueued so, Redis".into(),
            value: median(&round_trips),
            unit: "",
            yardstick: None,
            reach: Reach::Nothing,
        },
    ])
}

async fn enqueue_each(server: &Server) -> flexiq::Result<Duration> {
    let queue = Queue::open(server.tcp_url()).await?;
    let begun = Instant::now();
    let produce = |_| {
        let queue = queue.clone();
        tokio::spawn(async move {
            for _ in 0..JOBS / PRODUCERS {
                enqueue_stored(&queue, crate::padding()).await?;
            }
            Ok::<(), flexiq::Error>(())
        })
    };
    for producer in (0..PRODUCERS).map(produce).collect::<Vec<_>>() {
        producer.await.expect("it does not panic")?;
    }
    Ok(begun.elapsed())
}

/// A thousand jobs at once, one batch after the other.
pub(crate) fn in_bulk() -> flexiq::Result<Vec<Figure>> {
    let (mut ours, mut raw, mut cpu, mut raw_cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..crate::runs(5) {
        let server = Server::start();
        crate::runtime().block_on(async {
            let bare = Raw::open(&server).await;
            let before = bare.usage().await;
            raw.push(JOBS as f64 / bare.store_in_bulk(JOBS, &[b'x'; BODY]).await.as_secs_f64());
            let between = bare.usage().await;
            raw_cpu.push(between.since(&before).cpu / JOBS as f64);
            let queue = Queue::open(server.tcp_url()).await?;
            let begun = Instant::now();
            for _ in 0..JOBS / BULK {
                queue.enqueue_many((0..BULK).map(|_| enqueue_stored(&queue, crate::padding()))).await?;
            }
            ours.push(JOBS as f64 / begun.elapsed().as_secs_f64());
            cpu.push(bare.usage().await.since(&between).cpu / JOBS as f64);
            Ok::<(), flexiq::Error>(())
        })?;
    }
    Ok(vec![
        Figure {
            name: "enqueue in bulk of 1,000, Redis".into(),
            value: median(&ours),
            unit: "jobs/s",
            yardstick: Some(median(&raw)),
            reach: Reach::AtLeast(0.7),
        },
        Figure {
            name: "Redis CPU per job enqueued so".into(),
            value: median(&cpu),
            unit: "µs",
            yardstick: Some(median(&raw_cpu)),
            reach: Reach::Nothing,
        },
    ])
}

/// One job, awaited, then the next.
pub(crate) fn one_at_a_time() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    let (mut ours, mut raw) = (Vec::new(), Vec::new());
    crate::runtime().block_on(async {
        let bare = Raw::open(&server).await;
        let queue = Queue::open(server.tcp_url()).await?;
        for _ in 0..crate::runs(5_000) {
            raw.push(bare.set(&[b'x'; 100]).await.as_secs_f64() * 1e6);
            let begun = Instant::now();
            enqueue_stored(&queue, crate::padding()).await?;
            ours.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        Ok::<(), flexiq::Error>(())
    })?;
    Ok(vec![Figure {
        name: "enqueue, one at a time, awaited, Redis".into(),
        value: median(&ours),
        unit: "µs",
        yardstick: Some(median(&raw)),
        reach: Reach::AtMost(1.5),
    }])
}

/// What a job takes that waits.
pub(crate) fn memory() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    let taken = crate::runtime().block_on(async {
        let raw = Raw::open(&server).await;
        let queue = Queue::open(server.tcp_url()).await?;
        // The first job brings the keys.
        enqueue_stored(&queue, crate::padding()).await?;
        let before = raw.usage().await;
        for _ in 0..WAITING / BULK {
            queue.enqueue_many((0..BULK).map(|_| enqueue_stored(&queue, crate::padding()))).await?;
        }
        Ok::<_, flexiq::Error>(raw.usage().await.since(&before).memory)
    })?;
    Ok(vec![Figure {
        name: "memory of a waiting job, payload of 100 bytes, Redis".into(),
        value: taken / WAITING as f64,
        unit: "bytes",
        yardstick: None,
        reach: Reach::AtMost(350.0),
    }])
}
