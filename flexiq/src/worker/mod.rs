//! A worker: claims jobs of the tasks it has linked, runs them, and tells the store how they ended.
//!
//! The builder settles a plan, and starts a pump (the loop) and a heartbeat (a thread). `Worker` is the user's handle on
//! the two, and tells how they are.

mod away;
mod builder;
mod control;
mod ending;
mod executor;
mod fence;
mod health;
mod heartbeat;
mod hello;
mod leases;
mod leash;
#[cfg_attr(not(feature = "metrics"), path = "unmetered.rs")]
mod meter;
mod notes;
mod permits;
mod plan;
mod pump;
mod signals;
mod slots;
mod stopping;
mod stream;
mod tally;
mod threads;
mod ticks;
mod watch;

use std::fmt;
#[cfg(feature = "health")]
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use builder::WorkerBuilder;
pub use health::{Health, Trouble};
pub(crate) use leash::{Hand, Ran, Stage};

use crate::error::Result;
use crate::queue::Queue;
use crate::store::{Hello, WorkerId};
use away::Away;
use executor::Executor;
use health::{Pulse, Vitals};
use heartbeat::{Beater, Heartbeat};
use leases::Leases;
use leash::Leash;
use notes::Notes;
use permits::Permits;
use plan::Plan;
use pump::{Life, Pump};
use tally::Tally;
use threads::Threads;
use ticks::Ticks;

/// A running worker.
///
/// Dropping it begins its shutdown without waiting for it; [`shutdown`](Self::shutdown) waits.
#[must_use = "dropping a worker shuts it down: keep it, and end with `.shutdown().await`"]
pub struct Worker {
    id: WorkerId,
    stop: DropGuard,
    hurry: CancellationToken,
    pump: JoinHandle<()>,
    vitals: Arc<Vitals>,
    #[cfg(feature = "health")]
    health_address: Option<SocketAddr>,
}

/// How a worker works.
#[derive(Debug)]
enum Manner {
    /// Until it is told to stop,
    UntilTold,
    /// or until nothing is left to do;
    UntilIdle,
    /// or only while a test lets it.
    OnLeash(Leash),
}

impl Worker {
    /// Starts pump and heartbeat of a worker that is registered.
    fn start(hello: Hello, plan: Plan, queue: &Queue, manner: Manner) -> Result<Self> {
        let id = hello.worker;
        let store = queue.store().clone();
        let away = Arc::new(Away::default());
        let leases = Leases::new(plan.lease);
        let permits = Permits::new(store.clone(), away.clone(), leases.clone(), plan.lease);
        let ticks = Ticks::new(queue.clone());
        let notes = Notes::new(store.clone(), id, leases.clone());
        let registered = store.clock().elapsed();
        // A round of the heartbeat: until a beat is due, and until the store has answered it, or has failed to; one whom the
        // store has forgotten asks twice.
        let round = plan.beat().saturating_add(queue.timeout().saturating_mul(2));
        let pulse = Arc::new(Pulse::new(round, registered));
        let tally = Tally::new(&plan);
        let heartbeat = Heartbeat::start(Beater {
            store: store.clone(),
            worker: id,
            hello,
            leases: leases.clone(),
            permits: permits.clone(),
            ticks: ticks.clone(),
            notes: notes.clone(),
            lease: plan.lease,
            every: plan.beat(),
            registered,
            away: away.clone(),
            pulse: pulse.clone(),
            tally: tally.clone(),
            told: Mutex::default(),
        })?;
        let (sender, ended) = mpsc::unbounded_channel();
        let executor = Executor {
            runtime: tokio::runtime::Handle::current(),
            threads: Threads::default(),
            clock: store.clock().clone(),
            leases: leases.clone(),
            permits,
            tells: Arc::new(notes.clone()),
            notes,
            states: plan.states.clone(),
            queue: queue.clone(),
            ended: sender,
        };
        let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
        let vitals = Vitals::new(store.clock(), pulse, away.clone(), stop.clone());
        let until_idle = matches!(manner, Manner::UntilIdle);
        let leash = match manner {
            Manner::OnLeash(leash) => Some(leash),
            Manner::UntilTold | Manner::UntilIdle => None,
        };
        let life = Life { stop: stop.clone(), hurry: hurry.clone(), until_idle, leash };
        let pump = Pump::new(plan, (id, tally), executor, away, ended, ticks, life);
        let pump = tokio::spawn(work(pump, vitals.clone(), heartbeat, leases));
        Ok(Self {
            id,
            stop: stop.drop_guard(),
            hurry,
            pump,
            vitals,
            #[cfg(feature = "health")]
            health_address: None,
        })
    }

    /// Answers on this address how the worker is, until it has stopped.
    #[cfg(feature = "health")]
    fn answer_on(self, listener: health::Listener) -> Result<Self> {
        let health_address = Some(listener.address());
        let answerer = health::Answerer::start(listener, self.vitals.clone())?;
        let mut pump = self.pump;
        let pump = tokio::spawn(async move {
            join(&mut pump).await;
            answerer.close().await;
        });
        Ok(Self { pump, health_address, ..self })
    }

    /// The worker's id.
    pub(crate) fn id(&self) -> WorkerId {
        self.id
    }

    /// How the worker is now: live as long as its pump and its heartbeat come round, ready as long as it takes jobs, too.
    ///
    /// It asks nobody, and costs next to nothing. `WorkerBuilder::health_on` answers the same to probes from outside.
    pub fn health(&self) -> Health {
        self.vitals.health()
    }

    /// Where it answers how it is: the address of [`health_on`](WorkerBuilder::health_on), with the port that was free
    /// where port 0 was asked for.
    #[cfg(feature = "health")]
    pub fn health_address(&self) -> Option<SocketAddr> {
        self.health_address
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
async fn work(mut pump: Pump, vitals: Arc<Vitals>, heartbeat: Heartbeat, leases: Leases) {
    tokio::select! {
        biased;
        () = pump.run() => {}
        () = vitals.tick_with_pump() => unreachable!("it ticks for ever"),
    }
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
