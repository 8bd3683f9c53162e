//! What it costs to look at a store in which a million jobs wait, and what the looking costs the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use flexiq::internals::Enqueue;
use flexiq::{JobId, Queue};

use crate::claim::{job, name};
use crate::figure::{Figure, Reach, median, quantile};
use crate::latency::Probing;
use crate::redis_server::Server;

/// Jobs that wait, of tasks that no worker links,
const WAITING: usize = 1_000_000;
/// and so many of them in partitions of their own.
const PARTITIONS: usize = 100_000;
/// Stored in batches of so many.
const BATCH: usize = 10_000;
/// How often each question is asked.
const LOOKS: usize = 50;
/// Probes of a round, with somebody who asks and without.
const PROBES: usize = 500;

pub(crate) fn on_sqlite() -> flexiq::Result<Vec<Figure>> {
    let folder = tempfile::tempdir().expect("a folder for the store");
    let url = format!("sqlite://{}?synchronous=normal", folder.path().join("jobs.db").display());
    crate::runtime().block_on(measured("SQLite", &url))
}

pub(crate) fn on_redis() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    crate::runtime().block_on(measured("Redis", &server.tcp_url()))
}

async fn measured(store: &str, url: &str) -> flexiq::Result<Vec<Figure>> {
    // Whoever looks has a handle of its own, as another process would.
    let looking = Queue::open(url).await?;
    let last = fill(&looking).await?;
    let mut probing = Probing::open(url, None).await?;
    let mut figures = vec![
        took(store, "counts", || looking.counts()).await?,
        took(store, "stats", || looking.stats()).await?,
        took(store, "explain of the last job", || looking.explain(last)).await?,
    ];
    let begun = Instant::now();
    assert!(looking.doctor().await?.is_empty());
    figures.push(Figure {
        name: format!("doctor with {WAITING} jobs waiting, {store}"),
        value: begun.elapsed().as_secs_f64(),
        unit: "s",
        yardstick: None,
        reach: Reach::Nothing,
    });
    let questions = {
        let looking = looking.clone();
        move || {
            let looking = looking.clone();
            async move {
                looking.stats().await?;
                looking.explain(last).await.map(drop)
            }
        }
    };
    figures.push(beside(store, "somebody looks", &mut probing, questions, Reach::AtMost(1.2)).await?);
    let checks = move || {
        let looking = looking.clone();
        async move { looking.doctor().await.map(drop) }
    };
    figures.push(beside(store, "a check goes on", &mut probing, checks, Reach::Nothing).await?);
    probing.worker.shutdown().await?;
    Ok(figures)
}

/// The slowest starts while somebody does something again and again, against the slowest while nobody does.
async fn beside<Done: Future<Output = flexiq::Result<()>> + Send>(
    store: &str,
    what: &str,
    probing: &mut Probing,
    again: impl Fn() -> Done + Clone + Send + 'static,
    reach: Reach,
) -> flexiq::Result<Figure> {
    let (mut beside, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..crate::runs(3) {
        alone.extend(probing.probe(PROBES).await?);
        let others = Others::start(again.clone());
        beside.extend(probing.probe(PROBES).await?);
        others.stop().await?;
    }
    Ok(Figure {
        name: format!("enqueue to start while {what}, p99, {store}"),
        value: quantile(&beside, 0.99),
        unit: "µs",
        yardstick: Some(quantile(&alone, 0.99)),
        reach,
    })
}

/// Lets so many jobs wait; answers the last of those without a partition.
async fn fill(queue: &Queue) -> flexiq::Result<JobId> {
    let mut last = None;
    for batch in 0..WAITING / BATCH {
        let job = |number: usize| match (batch * BATCH + number).checked_sub(WAITING - PARTITIONS) {
            None => job("waiting", String::new()),
            Some(partition) => job("parted", partition.to_string()),
        };
        let jobs: Vec<_> = (0..BATCH).map(job).collect();
        let has_partitions = !jobs[BATCH - 1].partition.is_empty();
        let batch = Enqueue { queue: name("latency"), jobs, max_pending: None, producer: None };
        let stored = queue.below().enqueue(batch).await?;
        if !has_partitions {
            last = stored.last().map(|stored| stored.id);
        }
    }
    Ok(last.expect("jobs were stored"))
}

/// The milliseconds that a question takes.
async fn took<T, Asked: IntoFuture<Output = flexiq::Result<T>>>(
    store: &str,
    what: &str,
    ask: impl Fn() -> Asked,
) -> flexiq::Result<Figure> {
    let mut took = Vec::new();
    for _ in 0..LOOKS {
        let begun = Instant::now();
        ask().await?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Figure {
        name: format!("{what} with {WAITING} jobs waiting, {store}"),
        value: median(&took),
        unit: "ms",
        yardstick: None,
        reach: Reach::AtMost(200.0),
    })
}

/// Somebody who does one thing after the other.
struct Others {
    is_over: Arc<AtomicBool>,
    doing: tokio::task::JoinHandle<flexiq::Result<()>>,
}

impl Others {
    fn start<Done: Future<Output = flexiq::Result<()>> + Send>(
        again: impl Fn() -> Done + Send + 'static,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let doing = tokio::spawn({
            let is_over = is_over.clone();
            async move {
                while !is_over.load(Ordering::Relaxed) {
                    again().await?;
                }
                Ok(())
            }
        });
        Self { is_over, doing }
    }

    async fn stop(self) -> flexiq::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.doing.await.expect("it does not panic")
    }
}
