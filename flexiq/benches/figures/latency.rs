//! How long a job takes from its enqueue to its start on a worker that has nothing to do, or nothing that may start.

use std::path::Path;
use std::time::{Duration, Instant};

use flexiq::Queue;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::bare::Bare;
use crate::figure::{Figure, Reach, median, quantile};

#[flexiq::task(queue = "latency")]
async fn probe(#[state] started: UnboundedSender<Instant>) {
    // The measurement may be over.
    let _ = started.send(Instant::now());
}

/// Holds the one slot of its cap for as long as its worker runs.
#[flexiq::task(queue = "latency", max_concurrent = 1)]
async fn blocked() {
    std::future::pending::<()>().await;
}

/// A free job behind many that their cap keeps waiting, against the same job behind none.
pub(crate) fn behind_a_backlog() -> flexiq::Result<Vec<Figure>> {
    let backlog = if crate::is_soak() { 1_000_000 } else { 100_000 };
    let (mut behind, mut alone) = (Vec::new(), Vec::new());
    let measure = |backlog| crate::runtime().block_on(latencies("sqlite::memory:", Some(backlog), 300));
    for _ in 0..crate::runs(5) {
        alone.push(median(&measure(0)?));
        behind.push(median(&measure(backlog)?));
    }
    Ok(vec![Figure {
        name: format!("start of a free job behind {backlog} capped ones, to none"),
        value: median(&behind),
        unit: "µs",
        yardstick: Some(median(&alone)),
        reach: Reach::AtMost(1.2),
    }])
}

/// From enqueue to start, on an idle worker.
pub(crate) fn of_an_idle_worker() -> flexiq::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for synchronous in ["FULL", "NORMAL"] {
        let folder = tempfile::tempdir().expect("a folder for the stores");
        let file = folder.path().join("jobs.db").display().to_string();
        let url = format!("sqlite://{file}?synchronous={}", synchronous.to_lowercase());
        let probes = crate::runs(500);
        let ours = crate::runtime().block_on(latencies(&url, None, probes))?;
        let bare = bare(&folder.path().join("bare.db"), synchronous, probes);
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            figures.push(Figure {
                name: format!("enqueue to start, idle worker, SQLite {synchronous}, {name}"),
                value: quantile(&ours, part),
                unit: "µs",
                yardstick: Some(quantile(&bare, part)),
                reach: Reach::Nothing,
            });
        }
    }
    Ok(figures)
}

/// Microseconds from enqueue to start of some jobs, one after the other; with `Some` behind so many blocked ones.
async fn latencies(url: &str, backlog: Option<usize>, probes: usize) -> flexiq::Result<Vec<f64>> {
    let queue = Queue::open(url).await?;
    let (sender, mut started) = unbounded_channel();
    let mut tasks = vec![task_probe()];
    if let Some(backlog) = backlog {
        tasks.push(task_blocked());
        for _ in 0..backlog.div_ceil(10_000) {
            let jobs = backlog.min(10_000);
            queue.enqueue_many((0..jobs).map(|_| enqueue_blocked(&queue))).await?;
        }
        // One more, for the slot of the cap: both measurements have a run that goes on.
        enqueue_blocked(&queue).await?;
    }
    let worker = queue.worker().state(sender).tasks(tasks).grace(Duration::ZERO).start().await?;
    probe_once(&queue, &mut started).await?;
    let mut took = Vec::new();
    for _ in 0..probes {
        took.push(probe_once(&queue, &mut started).await?.as_secs_f64() * 1e6);
    }
    worker.shutdown().await?;
    Ok(took)
}

async fn probe_once(queue: &Queue, started: &mut UnboundedReceiver<Instant>) -> flexiq::Result<Duration> {
    let begun = Instant::now();
    let job = enqueue_probe(queue).await?;
    let start = started.recv().await.expect("the worker holds a sender");
    job.result().await?;
    // Let the worker find nothing more to do.
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(start.duration_since(begun))
}

/// Microseconds for storing and claiming some jobs by bare `rusqlite`, one after the other.
fn bare(file: &Path, synchronous: &str, probes: usize) -> Vec<f64> {
    let pass = || {
        let mut bare = Bare::open(file, synchronous)?;
        (0..probes).map(|number| Ok(bare.pass_one(number, b"{}")?.as_secs_f64() * 1e6)).collect()
    };
    let took: rusqlite::Result<Vec<f64>> = pass();
    took.expect("SQLite works")
}
