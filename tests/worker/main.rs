//! The worker seen from outside: real tasks, real threads, a real store, and a clock that the test moves.
//!
//! The suite runs on SQLite in memory, and once more on Redis: `redis.rs`.

mod backoffs;
mod blocked;
mod cancel;
mod deferrals;
mod endings;
mod enqueueing;
mod explain;
mod explain_task;
#[cfg(feature = "metrics")]
mod figures;
mod health;
mod idle;
mod knobs;
mod leases;
mod limits;
mod named_limits;
mod order;
mod partitions;
mod permits;
#[cfg(feature = "health")]
mod probes;
mod progress;
mod prometheus;
mod queues;
mod schedules;
mod shutdown;
mod start;
mod stats;
mod story;
mod unique;
mod waiting;
mod wake;
mod warnings;

use std::sync::Arc;

use flexiq::Queue;
use flexiq::internals::ManualClock;
use flexiq_tests::Spy;

/// The URL of an empty store, of the kind that this program tests.
fn url() -> String {
    match env!("CARGO_CRATE_NAME") {
        #[cfg(feature = "redis")]
        "worker_redis" => flexiq_tests::redis_server::url(),
        _ => "sqlite::memory:".into(),
    }
}

/// A queue of its own, on a clock that the test moves.
async fn queue() -> (Queue, ManualClock) {
    flexiq_tests::queue_at(&url()).await
}

/// A queue of its own, whose store can be watched and disturbed.
async fn spied() -> (Queue, Arc<Spy>, ManualClock) {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    (Queue::on(spy.clone()), spy, clock)
}
