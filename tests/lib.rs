//! What the suites of this folder share: a queue on a clock that the test moves, a journal that tasks write and tests
//! read, a store that can be watched and disturbed, a model of a store, and the ledger of the fault tests.

mod journal;
pub mod ledger;
#[path = "model/store/mod.rs"]
mod model;
#[cfg(feature = "redis")]
pub mod proxy;
#[cfg(feature = "redis")]
pub mod redis_server;
mod spy;

use std::future::Future;
use std::time::{Duration, SystemTime};

use flexiq::internals::{Clock, Filter, ManualClock, Store, Timestamp};
use flexiq::{Job, JobId, Queue, State};

pub use journal::Journal;
pub use model::{Manner, ModelStore};
pub use spy::{Spy, Verb};

/// Where every manual clock starts.
pub const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// How long a test waits for what must come before it fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// A queue of this store, on a clock that the test moves.
pub async fn queue_at(url: &str) -> (Queue, ManualClock) {
    let (clock, hands) = Clock::manual(START);
    let queue = Queue::builder(url).clock(clock).open().await.expect("a store of its own opens");
    (queue, hands)
}

/// Waits for a future that must end, and fails after a while instead of hanging.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: it did not happen"),
    }
}

/// Looks at a job until it is as it should be.
pub async fn until(queue: &Queue, id: JobId, what: &str, is_so: impl Fn(&Job) -> bool) -> Job {
    let look = async {
        loop {
            let job = queue.status(id).await.expect("the job is stored");
            if is_so(&job) {
                return job;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(what, look).await
}

/// All jobs of a filter, page by page.
///
/// # Panics
///
/// If the list has no end.
pub async fn listed(store: &dyn Store, mut filter: Filter) -> flexiq::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for _ in 0..10_000 {
        let page = store.list(filter.clone()).await?;
        jobs.extend(page.jobs);
        filter.after = page.reached;
        if filter.after.is_none() {
            return Ok(jobs);
        }
    }
    panic!("the list has no end");
}

/// Waits until a job is scheduled again.
pub async fn scheduled(queue: &Queue, id: JobId) -> Job {
    until(queue, id, "the job is scheduled", |job| matches!(job.state, State::Scheduled(_))).await
}

/// Waits until a job has ended.
pub async fn ended(queue: &Queue, id: JobId) -> Job {
    until(queue, id, "the job has ended", |job| job.state.is_ended()).await
}

/// How long after the clock's start a moment is.
pub fn after_start(moment: SystemTime) -> Duration {
    Timestamp::from(moment).since(START)
}

/// How long a job still has to wait.
pub fn wait_of(job: &Job, now: Timestamp) -> Duration {
    Timestamp::from(job.due_at).since(now)
}
