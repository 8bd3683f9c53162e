//! How fast one worker drains no-op jobs that are already stored.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flexiq::Queue;
use tokio::sync::Notify;

use crate::bare::Bare;
use crate::figure::{Figure, Reach, median};
use crate::padding;
use crate::raw::Raw;
use crate::redis_server::Server;

const JOBS: usize = 30_000;
const JOBS_ON_REDIS: usize = 100_000;
const CONCURRENCY: u32 = 100;

#[flexiq::task(queue = "drain")]
async fn no_op(#[state] left: Left, _padding: String) {
    left.one_less();
}

/// Jobs that have not run.
#[derive(Clone)]
struct Left {
    jobs: Arc<AtomicUsize>,
    none: Arc<Notify>,
}

impl Left {
    fn new(jobs: usize) -> Self {
        Self { jobs: Arc::new(AtomicUsize::new(jobs)), none: Arc::default() }
    }

    fn one_less(&self) {
        if self.jobs.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.none.notify_one();
        }
    }
}

pub(crate) fn sqlite() -> flexiq::Result<Vec<Figure>> {
    Ok(vec![drained("FULL")?, drained("NORMAL")?])
}

fn drained(synchronous: &str) -> flexiq::Result<Figure> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..crate::runs(5) {
        let folder = tempfile::tempdir().expect("a folder for the stores");
        bare.push(per_second(JOBS, drain_bare(&folder.path().join("bare.db"), synchronous)));
        let file = folder.path().join("jobs.db");
        let url = format!("sqlite://{}?synchronous={}", file.display(), synchronous.to_lowercase());
        let took = crate::runtime().block_on(async {
            let queue = Queue::open(url).await?;
            fill(&queue, JOBS).await?;
            drain(&queue, JOBS).await
        })?;
        ours.push(per_second(JOBS, took));
    }
    Ok(Figure {
        name: format!("no-op jobs drained, SQLite {synchronous}"),
        value: median(&ours),
        unit: "jobs/s",
        yardstick: Some(median(&bare)),
        reach: Reach::AtLeast(0.3),
    })
}

/// What one drain on Redis came to.
#[derive(Default)]
struct Drained {
    per_second: Vec<f64>,
    cpu: Vec<f64>,
    round_trips: Vec<f64>,
    calls: Vec<f64>,
}

impl Drained {
    fn add(&mut self, took: Duration, used: &crate::usage::Usage) {
        let jobs = JOBS_ON_REDIS as f64;
        self.per_second.push(per_second(JOBS_ON_REDIS, took));
        self.cpu.push(used.cpu / jobs);
        self.round_trips.push(used.sent() / jobs);
        self.calls.push(used.called() / jobs);
    }
}

/// Speed, the server's CPU, round trips and calls are all of the same drains.
pub(crate) fn redis() -> flexiq::Result<Vec<Figure>> {
    let (mut ours, mut bare) = (Drained::default(), Drained::default());
    for _ in 0..crate::runs(5) {
        crate::runtime().block_on(async {
            let server = Server::start();
            let raw = Raw::open(&server).await;
            raw.store(JOBS_ON_REDIS, &[b'x'; 100]).await;
            let before = raw.usage().await;
            bare.add(raw.drain().await, &raw.usage().await.since(&before));

            let queue = Queue::open(server.tcp_url()).await?;
            fill(&queue, JOBS_ON_REDIS).await?;
            let before = raw.usage().await;
            let took = drain(&queue, JOBS_ON_REDIS).await?;
            ours.add(took, &raw.usage().await.since(&before));
            Ok::<(), flexiq::Error>(())
        })?;
    }
    let figure = |name: &str, unit, of: fn(&Drained) -> &Vec<f64>, is_compared: bool, reach| Figure {
        name: name.into(),
        value: median(of(&ours)),
        unit,
        yardstick: is_compared.then(|| median(of(&bare))),
        reach,
    };
    Ok(vec![
        figure("no-op jobs drained, Redis", "jobs/s", |of| &of.per_second, true, Reach::AtLeast(0.4)),
        figure("Redis CPU per job drained", "µs", |of| &of.cpu, true, Reach::AtMost(2.4)),
        figure("round trips per job drained, Redis", "", |of| &of.round_trips, false, Reach::AtMost(0.1)),
        figure("calls within scripts per job drained, Redis", "", |of| &of.calls, false, Reach::AtMost(2.0)),
    ])
}

fn per_second(jobs: usize, took: Duration) -> f64 {
    jobs as f64 / took.as_secs_f64()
}

fn drain_bare(file: &Path, synchronous: &str) -> Duration {
    let drain = || {
        let mut bare = Bare::open(file, synchronous)?;
        bare.store(0, JOBS, &[b'x'; 100])?;
        bare.drain()
    };
    drain().expect("SQLite works")
}

async fn fill(queue: &Queue, jobs: usize) -> flexiq::Result<()> {
    for _ in 0..jobs / 10_000 {
        queue.enqueue_many((0..10_000).map(|_| enqueue_no_op(queue, padding()))).await?;
    }
    Ok(())
}

async fn drain(queue: &Queue, jobs: usize) -> flexiq::Result<Duration> {
    let left = Left::new(jobs);
    let worker = queue.worker().state(left.clone()).tasks([task_no_op()]).async_concurrency(CONCURRENCY);
    let begun = Instant::now();
    let worker = worker.start().await?;
    left.none.notified().await;
    // It ends when the last outcome is stored.
    worker.shutdown().await?;
    Ok(begun.elapsed())
}
