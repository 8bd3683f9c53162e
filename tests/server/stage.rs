//! A server, workers on it and a producer, and what must be true of them after a fault.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flexiq::{Context, Effect, Error, JobId, Queue, State, Worker};
use flexiq_tests::redis_server::Server;
use tokio::task::JoinHandle;

/// The lease of these workers: short, so that faults pass it.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// The most runs of `narrow` at once.
pub(crate) const CAP: usize = 2;

/// How long a fleet may take to do what it has to.
const PATIENCE: Duration = Duration::from_secs(40);

/// What ran: shared by the workers of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    /// How often the body of each job came to its end.
    ended: HashMap<JobId, u32>,
    narrow: usize,
    most_narrow: usize,
    newest: Option<Instant>,
}

impl Runs {
    fn lock(&self) -> std::sync::MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, context: &Context) {
        let mut log = self.lock();
        *log.ended.entry(context.job_id()).or_default() += 1;
        log.newest = Some(Instant::now());
    }

    /// Runs that came to their end.
    pub(crate) fn count(&self) -> usize {
        self.lock().ended.values().map(|times| *times as usize).sum()
    }

    /// Runs of `narrow` that held a slot together, at most.
    pub(crate) fn most_narrow(&self) -> usize {
        self.lock().most_narrow
    }
}

/// Counts a run of `narrow` for as long as it lives.
struct Narrow(Runs);

impl Narrow {
    fn enter(runs: &Runs) -> Self {
        let mut log = runs.lock();
        log.narrow += 1;
        log.most_narrow = log.most_narrow.max(log.narrow);
        Self(runs.clone())
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        self.0.lock().narrow -= 1;
    }
}

#[flexiq::task(queue = "brief", result_ttl = "1d")]
pub(crate) async fn brief(#[state] runs: Runs, #[context] context: Context, millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    runs.end(&context);
}

#[flexiq::task(queue = "narrow", result_ttl = "1d", max_concurrent = 2)]
pub(crate) async fn narrow(#[state] runs: Runs, #[context] context: Context, millis: u64) {
    let narrow = Narrow::enter(&runs);
    tokio::time::sleep(Duration::from_millis(millis)).await;
    drop(narrow);
    runs.end(&context);
}

/// A worker of this handle.
pub(crate) async fn worker(queue: &Queue, runs: &Runs) -> Worker {
    let builder = queue.worker().state(runs.clone()).queues(["brief", "narrow"]).async_concurrency(8);
    builder.lease(LEASE).grace(Duration::from_secs(5)).start().await.expect("it starts")
}

/// A server with a fleet.
pub(crate) struct Stage {
    pub(crate) server: Server,
    /// The producer's handle.
    pub(crate) queue: Queue,
    pub(crate) runs: Runs,
    workers: Vec<Worker>,
}

impl Stage {
    /// Two workers with handles of their own on a server with these settings.
    pub(crate) async fn with(settings: &[&str]) -> Self {
        let server = Server::with(settings);
        let runs = Runs::default();
        let mut workers = Vec::new();
        for _ in 0..2 {
            let queue = Queue::open(server.tcp_url()).await.expect("the store opens");
            workers.push(worker(&queue, &runs).await);
        }
        let queue = Queue::open(server.tcp_url()).await.expect("the store opens");
        Self { server, queue, runs, workers }
    }

    pub(crate) async fn new() -> Self {
        Self::with(&["--appendonly", "no"]).await
    }

    /// Begins to store jobs, until it is told to stop.
    pub(crate) fn load(&self) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(produce(self.queue.clone(), stop.clone()));
        Load { stop, task }
    }

    /// Waits until bodies come to their end again, and says how long that took.
    pub(crate) async fn goes_on(&self) -> Duration {
        let (begun, before) = (Instant::now(), self.runs.count());
        until("a job runs again", async || self.runs.count() > before + 5).await;
        begun.elapsed()
    }

    /// All these jobs have succeeded, none of them by way of a failure or a loss, nothing else is there, and no cap was
    /// passed.
    pub(crate) async fn accounts_for(self, made: &Made) {
        let expected = made.stored.len() as u64;
        until("all that was stored succeeds", async || self.succeeded().await == Some(expected)).await;
        let counts = self.queue.counts().await.expect("it answers");
        let others: u64 = counts.iter().map(|counts| counts.pending() + counts.running + counts.dead).sum();
        assert_eq!(others, 0, "{counts:?}");
        for id in &made.stored {
            let job = self.queue.status(*id).await.expect("it is there");
            let counters = (job.failures, job.deferrals, job.losses);
            assert_eq!((job.state, counters), (State::Succeeded, (0, 0, 0)), "after {} runs", job.runs);
        }
        assert!(self.runs.most_narrow() <= CAP, "{} at once", self.runs.most_narrow());
        for worker in self.workers {
            worker.shutdown().await.expect("it stops");
        }
    }

    async fn succeeded(&self) -> Option<u64> {
        let counts = self.queue.counts().await.ok()?;
        Some(counts.iter().map(|counts| counts.succeeded).sum())
    }
}

/// A producer at work.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Made>,
}

/// What a producer has made.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// Jobs whose enqueue was answered in the end, each sent by the same id until it was.
    pub(crate) stored: Vec<JobId>,
    /// What the producer was told meanwhile.
    pub(crate) errors: Vec<Error>,
}

impl Load {
    pub(crate) async fn stop(self) -> Made {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("the producer does not panic")
    }
}

async fn produce(queue: Queue, stop: Arc<AtomicBool>) -> Made {
    let mut made = Made::default();
    while !stop.load(Ordering::Relaxed) {
        let id = JobId::new();
        let is_narrow = made.stored.len().is_multiple_of(10);
        let mut is_unknown = false;
        loop {
            let answer = match is_narrow {
                true => enqueue_narrow(&queue, 5).id(id).await,
                false => enqueue_brief(&queue, 5).id(id).await,
            };
            match answer {
                Ok(_) => break made.stored.push(id),
                Err(error) => {
                    // One that may have been stored is sent until that is known.
                    is_unknown |= matches!(error, Error::StoreUnavailable { effect: Effect::Unknown, .. });
                    made.errors.push(error);
                }
            }
            if stop.load(Ordering::Relaxed) && !is_unknown {
                return made;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    made
}

/// Looks until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "{what}: it did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Goes on for so long.
pub(crate) async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
