//! A worker: claims jobs of the tasks it has linked, runs them, and tells the store how they ended.
//!
//! The builder settles a plan, and starts a pump (the loop) and a heartbeat (a thread). `Worker` is the user's handle on
//! the two.

mod away;
mod builder;
mod control;
mod ending;
mod executor;
mod fence;
mod heartbeat;
mod leases;
mod permits;
mod plan;
mod pump;
mod signals;
mod slots;
mod stopping;
mod stream;
mod threads;

use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use builder::WorkerBuilder;

use crate::error::Result;
use crate::queue::Queue;
use crate::store::{Hello, WorkerId};
use away::Away;
use executor::Executor;
use heartbeat::{Beater, Heartbeat};
use leases::Leases;
use permits::Permits;
use plan::Plan;
use pump::{Life, Pump};
use threads::Threads;

/// A running worker.
///
/// Dropping it begins its shutdown without waiting for it; [`shutdown`](Self::shutdown) waits.
#[must_use = "dropping a worker shuts it down: keep it, and end with `.shutdown().await`"]
pub struct Worker {
    id: WorkerId,
    stop: DropGuard,
    hurry: CancellationToken,
    pump: JoinHandle<()>,
}

impl Worker {
    /// Starts pump and heartbeat of a worker that is registered.
    fn start(hello: Hello, plan: Plan, queue: &Queue, until_idle: bool) -> Result<Self> {
        let id = hello.worker;
        let store = queue.store().clone();
        let away = Arc::new(Away::default());
        let leases = Leases::new(plan.lease);
        let permits = Permits::new(store.clone(), away.clone(), leases.clone(), plan.lease);
        let heartbeat = Heartbeat::start(Beater {
            store: store.clone(),
            worker: id,
            hello,
            leases: leases.clone(),
            permits: permits.clone(),
            lease: plan.lease,
            every: plan.beat(),
            registered: store.clock().elapsed(),
            away: away.clone(),
        })?;
        let (sender, ended) = mpsc::unbounded_channel();
        let executor = Executor {
            runtime: tokio::runtime::Handle::current(),
            threads: Threads::default(),
            clock: store.clock().clone(),
            leases: leases.clone(),
            permits,
            states: plan.states.clone(),
            queue: queue.clone(),
            ended: sender,
        };
        let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
        let life = Life { stop: stop.clone(), hurry: hurry.clone(), until_idle };
        let pump = Pump::new(plan, store, id, executor, away, ended, life);
        let pump = tokio::spawn(work(pump, heartbeat, leases));
        Ok(Self { id, stop: stop.drop_guard(), hurry, pump })
    }

    /// Stops claiming, lets the runs end for the grace (25 s unless set), then tells them to stop, and a second later
    /// drops the async ones; what did not end is released and starts elsewhere at once, with no counter moved.
    ///
    /// A plain function cannot be stopped: it goes on for as long as the process lives, and its lease with it.
    ///
    /// # Errors
    ///
    /// None at present; a store that is away does not keep a worker from stopping.
    ///
    /// # Panics
    ///
    /// If the worker itself has panicked, with its panic.
    pub async fn shutdown(self) -> Result<()> {
        let Self { stop, mut pump, .. } = self;
        drop(stop);
        join(&mut pump).await;
        Ok(())
    }
}

/// Runs the pump to its end, and leaves what could not be brought home to the heartbeat.
async fn work(mut pump: Pump, heartbeat: Heartbeat, leases: Leases) {
    pump.run().await;
    let still_running = leases.running_plain();
    if !still_running.is_empty() {
        tracing::warn!(
            tasks = still_running.join(", "),
            "plain functions are still running; their jobs start elsewhere once this process is gone"
        );
    }
    let rest = pump.has_rest().then(|| Box::new(pump));
    heartbeat.finish(rest).await;
}

async fn join(pump: &mut JoinHandle<()>) {
    match pump.await {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // Cancelled: the runtime is being dropped, and the caller with it.
        Ok(()) | Err(_) => {}
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("id", &self.id).finish_non_exhaustive()
    }
}
