//! How fast one worker drains no-op jobs that are already stored.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flexiq::Queue;
use tokio::sync::Notify;

use crate::bare::Bare;
use crate::figure::{Figure, Reach, median};

const JOBS: usize = 30_000;
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

pub(crate) fn full() -> flexiq::Result<Vec<Figure>> {
    drained("FULL")
}

pub(crate) fn normal() -> flexiq::Result<Vec<Figure>> {
    drained("NORMAL")
}

fn drained(synchronous: &str) -> flexiq::Result<Vec<Figure>> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..crate::runs(5) {
        let folder = tempfile::tempdir().expect("a folder for the stores");
        bare.push(per_second(drain_bare(&folder.path().join("bare.db"), synchronous)));
        ours.push(per_second(crate::runtime().block_on(drain(&folder.path().join("jobs.db"), synchronous))?));
    }
    Ok(vec![Figure {
        name: format!("no-op jobs drained, SQLite {synchronous}"),
        value: median(&ours),
        unit: "jobs/s",
        yardstick: Some(median(&bare)),
        reach: Reach::AtLeast(0.3),
    }])
}

fn per_second(took: Duration) -> f64 {
    JOBS as f64 / took.as_secs_f64()
}

/// A payload of 100 bytes, as `{"padding":"…"}`.
fn padding() -> String {
    "x".repeat(100 - r#"{"padding":""}"#.len())
}

fn drain_bare(file: &Path, synchronous: &str) -> Duration {
    let drain = || {
        let mut bare = Bare::open(file, synchronous)?;
        bare.store(0, JOBS, &[b'x'; 100])?;
        bare.drain()
    };
    drain().expect("SQLite works")
}

async fn drain(file: &Path, synchronous: &str) -> flexiq::Result<Duration> {
    let url = format!("sqlite://{}?synchronous={}", file.display(), synchronous.to_lowercase());
    let queue = Queue::open(url).await?;
    for _ in 0..JOBS / 10_000 {
        queue.enqueue_many((0..10_000).map(|_| enqueue_no_op(&queue, padding()))).await?;
    }
    let left = Left::new(JOBS);
    let worker = queue.worker().state(left.clone()).tasks([task_no_op()]).async_concurrency(CONCURRENCY);
    let begun = Instant::now();
    let worker = worker.start().await?;
    left.none.notified().await;
    // It ends when the last outcome is stored.
    worker.shutdown().await?;
    Ok(begun.elapsed())
}
