//! How well a cap is used: a freed slot is refilled at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flexiq::{JobId, Queue};
use tokio::sync::Notify;

use crate::figure::{Figure, Reach, median};
use crate::redis_server::Server;

const CAP: usize = 3;
const JOBS: usize = 30;
const BODY: Duration = Duration::from_millis(200);

#[flexiq::task(queue = "cap", max_concurrent = 3)]
async fn capped(#[state] clock: PunchClock) {
    let begun = Instant::now();
    tokio::time::sleep(BODY).await;
    clock.punch(begun);
}

/// When each body began and ended.
#[derive(Clone, Default)]
struct PunchClock {
    bodies: Arc<Mutex<Vec<(Instant, Instant)>>>,
    all: Arc<Notify>,
}

impl PunchClock {
    fn punch(&self, begun: Instant) {
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.push((begun, Instant::now()));
        if bodies.len() == JOBS {
            self.all.notify_one();
        }
    }
}

pub(crate) fn in_use() -> flexiq::Result<Vec<Figure>> {
    let folder = tempfile::tempdir().expect("a folder for the stores");
    let file = || format!("sqlite://{}", folder.path().join(format!("{}.db", JobId::new())).display());
    Ok(vec![measured("in memory", || "sqlite::memory:".into())?, measured("FULL", file)?])
}

pub(crate) fn in_use_on_redis() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    Ok(vec![measured("Redis", || format!("{}?prefix=cap-{}", server.tcp_url(), JobId::new()))?])
}

fn measured(place: &str, url: impl Fn() -> String) -> flexiq::Result<Figure> {
    let mut shares = Vec::new();
    for _ in 0..crate::runs(3) {
        shares.push(crate::runtime().block_on(share(&url()))?);
    }
    Ok(Figure {
        name: format!("slots in use of a cap of 3, jobs of 200 ms, {place}"),
        value: median(&shares) * 100.0,
        unit: "%",
        yardstick: None,
        reach: Reach::AtLeast(98.0),
    })
}

/// The part of three slots that was in use from the first start to the last end.
async fn share(url: &str) -> flexiq::Result<f64> {
    let queue = Queue::open(url).await?;
    queue.enqueue_many((0..JOBS).map(|_| enqueue_capped(&queue))).await?;
    let clock = PunchClock::default();
    let worker = queue.worker().state(clock.clone()).tasks([task_capped()]).start().await?;
    clock.all.notified().await;
    worker.shutdown().await?;
    let bodies = clock.bodies.lock().unwrap_or_else(PoisonError::into_inner);
    let first = bodies.iter().map(|body| body.0).min().expect("there are bodies");
    let last = bodies.iter().map(|body| body.1).max().expect("there are bodies");
    let used: Duration = bodies.iter().map(|(begun, ended)| ended.duration_since(*begun)).sum();
    Ok(used.as_secs_f64() / (last.duration_since(first).as_secs_f64() * CAP as f64))
}
