//! How long a job takes from its enqueue to its start on a worker that has nothing to do, or nothing that may start.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flexiq::internals::{
    Claim, Due, Enqueue, Finish, Name, NewJob, Outset, Payload, Room, Transition, Turn, WorkerId,
};
use flexiq::{JobId, Queue, Worker};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::bare::Bare;
use crate::figure::{Figure, Reach, median, quantile};
use crate::raw::Raw;
use crate::redis_server::Server;

/// How many jobs are started, one after the other,
const PROBES: usize = 300;
/// and how many are claimed so.
const CLAIMS: u64 = 50;

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
    let measure = |backlog| crate::runtime().block_on(latencies("sqlite::memory:", Some(backlog), PROBES));
    for _ in 0..crate::runs(5) {
        alone.push(median(&measure(0)?));
        behind.push(median(&measure(backlog)?));
    }
    Ok(vec![Figure {
        name: format!("start of a free job behind {backlog} capped ones, to none, SQLite"),
        value: median(&behind),
        unit: "µs",
        yardstick: Some(median(&alone)),
        reach: Reach::AtMost(1.2),
    }])
}

/// The same on Redis: also the calls and the time of the claim that finds it.
pub(crate) fn behind_a_backlog_on_redis() -> flexiq::Result<Vec<Figure>> {
    let backlog = 1_000_000;
    let servers = [Server::start(), Server::start()];
    let (mut latencies, mut calls, mut time) = <([Vec<f64>; 2], [Vec<f64>; 2], [Vec<f64>; 2])>::default();
    crate::runtime().block_on(async {
        let mut probing = [
            Probing::open(&servers[0].tcp_url(), Some(0)).await?,
            Probing::open(&servers[1].tcp_url(), Some(backlog)).await?,
        ];
        for _ in 0..crate::runs(5) {
            for at in 0..2 {
                latencies[at].push(median(&probing[at].probe(PROBES).await?));
                let raw = Raw::open(&servers[at]).await;
                let (called, took) = claims(&probing[at].queue, &raw).await?;
                calls[at].push(called);
                time[at].push(took);
            }
        }
        for probing in probing {
            probing.worker.shutdown().await?;
        }
        Ok::<(), flexiq::Error>(())
    })?;
    let figure = |what: &str, unit, [alone, behind]: &[Vec<f64>; 2]| Figure {
        name: format!("{what} a free job behind {backlog} capped ones, to none, Redis"),
        value: median(behind),
        unit,
        yardstick: Some(median(alone)),
        reach: Reach::AtMost(1.2),
    };
    Ok(vec![
        figure("start of", "µs", &latencies),
        figure("calls in the claim of", "", &calls),
        figure("Redis time in the claim of", "µs", &time),
    ])
}

/// Calls and microseconds of a claim that finds one free job of a task which the running worker does not link.
async fn claims(queue: &Queue, raw: &Raw) -> flexiq::Result<(f64, f64)> {
    let store = queue.below();
    let name = |text: &str| Name::new("name", text).expect("it is a name");
    let worker = WorkerId::new();
    let room = |task: &str| Room { task: name(task), slot: 0, at_most: 100, max_losses: 3 };
    let turn = |number, finishes, claim| Turn { worker, queue: name("latency"), number, finishes, claim };
    let (mut calls, mut time) = (Vec::new(), Vec::new());
    for number in 1..=CLAIMS {
        let job = NewJob {
            id: JobId::new(),
            task: name("aside"),
            partition: String::new(),
            max_pending_per_partition: None,
            payload: Payload { codec: 0, bytes: b"{}".to_vec() },
            priority: 0,
            due: Due::NOW,
            expires: None,
            outset: Outset::default(),
            unique: None,
            is_given: false,
        };
        store
            .enqueue(Enqueue { queue: name("latency"), jobs: vec![job], max_pending: None, producer: None })
            .await?;
        let tasks = vec![room("aside"), room("blocked")];
        let claim = Claim { slots: vec![100], tasks, lease: Duration::from_secs(60) };
        let before = raw.usage().await;
        let answer = store.turn(Arc::new(turn(2 * number, Vec::new(), Some(claim)))).await?;
        let used = raw.usage().await.since(&before);
        calls.push(used.called());
        time.push(used.in_scripts());
        let finish = |lease| Finish::new(lease, Transition::Cancel);
        let finishes: Vec<Finish> = answer.claimed.iter().map(|claimed| finish(claimed.lease)).collect();
        assert_eq!(finishes.len(), 1);
        store.turn(Arc::new(turn(2 * number + 1, finishes, None))).await?;
    }
    Ok((median(&calls), median(&time)))
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

/// The same on Redis, against a push, a blocking pop on another connection and the plainest script.
pub(crate) fn of_an_idle_worker_on_redis() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    crate::runtime().block_on(async {
        let raw = Raw::open(&server).await;
        let mut probing = Probing::open(&server.tcp_url(), None).await?;
        for _ in 0..crate::runs(5) {
            bare.extend(raw.pass_each(PROBES).await);
            ours.extend(probing.probe(PROBES).await?);
        }
        probing.worker.shutdown().await
    })?;
    let figure = |name, part, most| Figure {
        name: format!("enqueue to start, idle worker, Redis, {name}"),
        value: quantile(&ours, part),
        unit: "µs",
        yardstick: Some(quantile(&bare, part)),
        reach: Reach::AtMost(most),
    };
    Ok(vec![figure("p50", 0.5, 1.3), figure("p99", 0.99, 3.0)])
}

/// Microseconds from enqueue to start of some jobs, one after the other; with `Some` behind so many blocked ones.
async fn latencies(url: &str, backlog: Option<usize>, probes: usize) -> flexiq::Result<Vec<f64>> {
    let mut probing = Probing::open(url, backlog).await?;
    let took = probing.probe(probes).await?;
    probing.worker.shutdown().await?;
    Ok(took)
}

/// A worker that has nothing to do but to start probes.
pub(crate) struct Probing {
    queue: Queue,
    started: UnboundedReceiver<Instant>,
    pub(crate) worker: Worker,
}

impl Probing {
    /// Starts it; with `Some` behind so many blocked jobs.
    pub(crate) async fn open(url: &str, backlog: Option<usize>) -> flexiq::Result<Self> {
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
        Ok(Self { queue, started, worker })
    }

    /// Microseconds from enqueue to start of some jobs, one after the other.
    pub(crate) async fn probe(&mut self, probes: usize) -> flexiq::Result<Vec<f64>> {
        let mut took = Vec::new();
        for _ in 0..probes {
            took.push(probe_once(&self.queue, &mut self.started).await?.as_secs_f64() * 1e6);
        }
        Ok(took)
    }
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
