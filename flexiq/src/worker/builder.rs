//! How a worker is set and started.

use std::fmt;
#[cfg(feature = "health")]
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

#[cfg(feature = "health")]
use super::health::Listener;
use super::hello::hello;
use super::leash::{Hand, leash};
use super::plan::{Plan, Wishes};
use super::signals::Signals;
use super::{Manner, Worker, join};
use crate::error::{Error, Result};
use crate::policy::notation;
use crate::queue::Queue;
use crate::store::WorkerId;
use crate::task::{Registry, States, Task};

/// A worker to be set and started: [`Queue::worker`].
///
/// What is not set is taken from the environment: `FLEXIQ_WORKERS`, `FLEXIQ_ASYNC_CONCURRENCY`, `FLEXIQ_QUEUES` (separated
/// by commas), `FLEXIQ_GRACE` and `FLEXIQ_LEASE` (such as `25s`).
#[must_use = "a worker works after `.start().await`, or while `.run().await` runs"]
#[derive(Clone)]
pub struct WorkerBuilder {
    queue: Queue,
    states: States,
    tasks: Option<Vec<Task>>,
    queues: Option<Vec<String>>,
    weights: Vec<(String, u32)>,
    is_strict: bool,
    workers: Option<u32>,
    async_concurrency: Option<u32>,
    grace: Option<Duration>,
    lease: Option<Duration>,
    #[cfg(feature = "health")]
    health_on: Option<SocketAddr>,
}

impl WorkerBuilder {
    pub(crate) fn new(queue: Queue) -> Self {
        Self {
            queue,
            states: States::default(),
            tasks: None,
            queues: None,
            weights: Vec::new(),
            is_strict: false,
            workers: None,
            async_concurrency: None,
            grace: None,
            lease: None,
            #[cfg(feature = "health")]
            health_on: None,
        }
    }

    /// Gives the worker a state for the `#[state]` parameters of its type. A later one of the same type replaces it.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, state: S) -> Self {
        self.states.insert(state);
        self
    }

    /// Gives the worker all of these states.
    pub(crate) fn states(mut self, states: States) -> Self {
        self.states = states;
        self
    }

    /// Serves these queues. Defaults to the home queues of all linked tasks, and to the queues where jobs of theirs lie when
    /// the worker starts: after a deploy that changed a task's home, its old jobs still run.
    pub fn queues<N: Into<String>>(mut self, queues: impl IntoIterator<Item = N>) -> Self {
        self.queues = Some(queues.into_iter().map(Into::into).collect());
        self
    }

    /// Gives a queue this weight where several want the worker's slots: one of weight 3 is offered three times the room of
    /// one of weight 1. Defaults to 1 for each, and at most 1,000; a later call for the same queue replaces an earlier one.
    ///
    /// Weights order, they do not isolate: what one queue leaves, another takes, and a slot that is taken is free again when
    /// its job ends. To keep slots for a queue, give it a worker of its own, or its neighbours `max_in_flight_per_task`.
    ///
    /// ```no_run
    /// # async fn example(queue: flexiq::Queue) -> flexiq::Result<()> {
    /// queue.worker().queues(["emails", "reports"]).weight("emails", 3).run().await
    /// # }
    /// ```
    pub fn weight(mut self, queue: impl Into<String>, weight: u32) -> Self {
        self.weights.push((queue.into(), weight));
        self
    }

    /// Serves the queues strictly in the order of [`queues`](Self::queues): a later one is asked for jobs only when the
    /// earlier ones have left room. A flood of an earlier one starves the later ones.
    pub fn strict_order(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Serves these tasks alone. Defaults to all that are linked.
    ///
    /// `#[flexiq::task]` on `build_report` makes `task_build_report()` for it.
    pub fn tasks(mut self, tasks: impl IntoIterator<Item = Task>) -> Self {
        self.tasks = Some(tasks.into_iter().collect());
        self
    }

    /// Runs at most this many plain functions at once, each on a thread. Defaults to the CPU count, which 0 means too.
    #[doc(alias = "concurrency")]
    #[doc(alias = "threads")]
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Runs at most this many async functions at once. Defaults to 100.
    #[doc(alias = "concurrency")]
    #[doc(alias = "max_jobs")]
    pub fn async_concurrency(mut self, jobs: u32) -> Self {
        self.async_concurrency = Some(jobs);
        self
    }

    /// How long runs may go on when the worker stops, before they are told to stop too. Defaults to 25 s.
    #[doc(alias = "shutdown_timeout")]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// How long a job stays this worker's without a sign of life; renewed three times in that time. Defaults to 10 s,
    /// from 1 s to 24 h.
    ///
    /// A dead worker's jobs start elsewhere when it is over.
    #[doc(alias = "visibility_timeout")]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Answers `GET /live` and `GET /ready` on this address from the worker's start until it has stopped: 200, or 503 and the
    /// reason as text, as probes of Kubernetes ask. Defaults to no address. Needs the feature `health`.
    ///
    /// Port 0 takes any that is free: [`Worker::health_address`] says which. What is [`live`](crate::Health::is_live) and
    /// [`ready`](crate::Health::is_ready) is said at [`Worker::health`]. There is no TLS, and nothing to protect: it tells how
    /// the worker is, and no more.
    ///
    /// ```no_run
    /// # async fn example(queue: flexiq::Queue) -> flexiq::Result<()> {
    /// queue.worker().health_on(([0, 0, 0, 0], 8080)).run().await
    /// # }
    /// ```
    #[cfg(feature = "health")]
    #[doc(alias = "liveness")]
    #[doc(alias = "readiness")]
    pub fn health_on(mut self, address: impl Into<SocketAddr>) -> Self {
        self.health_on = Some(address.into());
        self
    }

    /// Starts the worker, on the runtime that this is awaited on.
    ///
    /// # Errors
    ///
    /// [`Error::NothingToServe`], [`Error::MissingState`], [`Error::DuplicateTask`], [`Error::NotBuilt`],
    /// [`Error::Unknown`] for a queue or the time zone of a cron, [`Error::Invalid`] for a number, an order or a variable of the environment,
    /// [`Error::HealthAddress`], and what the store says. Nothing has started then.
    pub async fn start(self) -> Result<Worker> {
        self.launch(Manner::UntilTold).await
    }

    /// Starts a worker that claims only while its hand lets it.
    pub(crate) async fn start_on_leash(self) -> Result<(Worker, Hand)> {
        let (hand, leash) = leash();
        Ok((self.launch(Manner::OnLeash(leash)).await?, hand))
    }

    /// Works until the process is told to end by SIGTERM or ctrl-c. A second signal ends the grace at once.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub async fn run(self) -> Result<()> {
        let mut signals = Signals::new()?;
        let Worker { stop, hurry, mut pump, .. } = self.launch(Manner::UntilTold).await?;
        tokio::select! {
            () = signals.next() => {}
            // It ends only by a panic of our own.
            () = join(&mut pump) => return Ok(()),
        }
        drop(stop);
        tokio::select! {
            biased;
            () = join(&mut pump) => return Ok(()),
            () = signals.next() => hurry.cancel(),
        }
        join(&mut pump).await;
        Ok(())
    }

    /// Works until `end` is ready, then shuts down as [`Worker::shutdown`] does. Takes no signals.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub async fn run_until<F: Future>(self, end: F) -> Result<()> {
        let worker = self.start().await?;
        end.await;
        worker.shutdown().await
    }

    /// Works until nothing of its tasks is ready, scheduled or running, on this worker or another.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub async fn run_until_idle(self) -> Result<()> {
        let Worker { stop, mut pump, .. } = self.launch(Manner::UntilIdle).await?;
        join(&mut pump).await;
        drop(stop);
        Ok(())
    }

    async fn launch(self, manner: Manner) -> Result<Worker> {
        let queue = self.queue.clone();
        #[cfg(feature = "health")]
        let listener = self.health_on.map(Listener::bind).transpose()?;
        let plan = Plan::settle(self.wishes()?, &**queue.store()).await?;
        let id = WorkerId::new();
        let hello = hello(id, &plan, &queue)?;
        queue.store().register(hello.clone()).await?;
        tell(id, &plan);
        let worker = Worker::start(hello, plan, &queue, manner)?;
        #[cfg(feature = "health")]
        if let Some(listener) = listener {
            return worker.answer_on(listener);
        }
        Ok(worker)
    }

    /// What was set, and where code is silent, what the environment says.
    fn wishes(self) -> Result<Wishes> {
        let registry = match self.tasks {
            Some(tasks) => Registry::of(tasks)?,
            None => Registry::linked()?,
        };
        let queues = match self.queues {
            Some(queues) => Some(queues),
            None => variable("FLEXIQ_QUEUES")
                .map(|names| names.split(',').map(|name| name.trim().to_owned()).collect()),
        };
        let lease = or_time(self.lease, "FLEXIQ_LEASE", Duration::from_secs(10))?;
        if !(Duration::from_secs(1)..=Duration::from_secs(24 * 60 * 60)).contains(&lease) {
            return Err(Error::Invalid {
                what: "lease".into(),
                given: format!("{lease:?}"),
                accepted: "1 s to 24 h".into(),
            });
        }
        Ok(Wishes {
            registry,
            queues,
            weights: self.weights,
            is_strict: self.is_strict,
            workers: or_number(self.workers, "FLEXIQ_WORKERS")?,
            async_concurrency: or_number(self.async_concurrency, "FLEXIQ_ASYNC_CONCURRENCY")?,
            lease,
            grace: or_time(self.grace, "FLEXIQ_GRACE", Duration::from_secs(25))?,
            states: self.states,
        })
    }
}

/// Says what the worker serves and with how many slots.
fn tell(id: WorkerId, plan: &Plan) {
    let tasks: Vec<&str> = plan.tasks.iter().map(|task| &*task.name).collect();
    let queues: Vec<&str> = plan.queues.iter().map(|queue| &*queue.name).collect();
    let [async_slots, plain_slots] = plan.slots;
    tracing::info!(
        worker = %id,
        queues = queues.join(", "),
        tasks = tasks.join(", "),
        async_slots,
        plain_slots,
        "the worker starts"
    );
}

pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn or_number(set: Option<u32>, name: &str) -> Result<Option<u32>> {
    let Some(value) = variable(name).filter(|_| set.is_none()) else { return Ok(set) };
    match u32::from_str(&value) {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Error::Invalid {
            what: name.into(),
            given: format!("{value:?}"),
            accepted: "a whole number".into(),
        }),
    }
}

fn or_time(set: Option<Duration>, name: &str, default: Duration) -> Result<Duration> {
    match (set, variable(name)) {
        (Some(time), _) => Ok(time),
        (None, None) => Ok(default),
        (None, Some(value)) => notation::parse_duration(&value).map_err(|error| Error::Invalid {
            what: name.into(),
            given: format!("{value:?}"),
            accepted: error,
        }),
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("queue", &self.queue)
            .field("states", &self.states)
            .field("queues", &self.queues)
            .field("workers", &self.workers)
            .field("async_concurrency", &self.async_concurrency)
            .field("grace", &self.grace)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
