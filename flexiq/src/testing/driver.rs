//! What moves a test: it lets the worker off, moves the clock from one moment to the next, and gathers what happened.
//!
//! One drain or advance goes on at a time. What starts, when, and what follows is decided by the engine alone.

use std::sync::Arc;
use std::time::Duration;

use super::drained::{Drained, MOST_TOLD, Run, Waiting};
use crate::clock::{Clock, ManualClock};
use crate::error::Result;
use crate::job::{Job, JobId, ScheduledReason, State};
use crate::name::Name;
use crate::queue::Queue;
use crate::store::sqlite::SqliteStore;
use crate::store::{Beat, Filter, Store};
use crate::task::{Kind, Registry, States, Task};
use crate::worker::{Hand, Stage, Worker};

/// Long, so that whatever time passes in one stride, what runs keeps its lease.
const LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// A stride while something runs: its worker's beats come between.
const STRIDE: Duration = Duration::from_secs(6 * 60 * 60);
/// A job that was enqueued inline is helped on so often.
const MOST_STRIDES: usize = 1_000;

/// What moves a test.
pub(super) struct Driver {
    store: Arc<SqliteStore>,
    /// The handle of the worker, and of the contexts of its runs.
    queue: Queue,
    clock: Clock,
    hands: ManualClock,
    tasks: Vec<Task>,
    states: States,
    patience: Duration,
    on_duty: Option<OnDuty>,
    runs: Vec<Run>,
}

/// The worker, and what it serves.
struct OnDuty {
    worker: Worker,
    hand: Hand,
    queues: Vec<Name>,
    stage: Stage,
}

impl Driver {
    pub(super) fn new(
        store: Arc<SqliteStore>,
        queue: Queue,
        hands: ManualClock,
        tasks: Vec<Task>,
        states: States,
        patience: Duration,
    ) -> Self {
        let clock = store.clock().clone();
        Self { store, queue, clock, hands, tasks, states, patience, on_duty: None, runs: Vec::new() }
    }

    /// Puts a worker on duty for all queues where jobs of its tasks may lie; answers whether it is a new one. While bodies
    /// run, theirs stays.
    pub(super) async fn serve(&mut self) -> Result<bool> {
        if self.tasks.is_empty() {
            return Ok(false);
        }
        let queues = self.queues().await?;
        if let Some(OnDuty { queues: served, stage, .. }) = &self.on_duty
            && (queues.iter().all(|queue| served.contains(queue)) || matches!(stage, Stage::Bodies { .. }))
        {
            return Ok(false);
        }
        if let Some(OnDuty { worker, .. }) = self.on_duty.take() {
            worker.shutdown().await?;
        }
        let mut builder = self.queue.worker().tasks(self.tasks.iter().copied()).states(self.states.clone());
        // All is said, so that the environment is not asked.
        builder =
            builder.queues(queues.iter().map(Name::as_str)).lease(LEASE).grace(Duration::MAX).workers(0);
        if self.tasks.iter().any(|task| task.definition().kind == Kind::Async) {
            builder = builder.async_concurrency(100);
        }
        let (worker, hand) = builder.start_on_leash().await?;
        self.on_duty = Some(OnDuty { worker, hand, queues, stage: Stage::Busy });
        Ok(true)
    }

    /// The home queues of the tasks, and where else jobs of theirs lie.
    async fn queues(&self) -> Result<Vec<Name>> {
        let mut queues: Vec<Name> = self.tasks.iter().map(|task| Name::from_static(task.queue())).collect();
        for counts in self.store.counts().await?.tasks {
            if self.tasks.iter().any(|task| task.name() == counts.task) {
                queues.push(Name::new("queue", &counts.queue)?);
            }
        }
        queues.sort();
        queues.dedup();
        Ok(queues)
    }

    /// Runs all that may run now.
    pub(super) async fn drain(&mut self) -> Result<()> {
        self.serve().await?;
        loop {
            let Some(on_duty) = &mut self.on_duty else { return Ok(()) };
            on_duty.stage = on_duty.hand.drain(self.patience).await;
            self.runs.extend(on_duty.hand.ran().into_iter().map(Run::of));
            // A body may have enqueued elsewhere.
            if !self.serve().await? {
                return Ok(());
            }
        }
    }

    /// Lets time pass, from one moment at which something may happen to the next.
    pub(super) async fn advance(&mut self, time: Duration) -> Result<()> {
        let end = self.clock.elapsed().saturating_add(time);
        loop {
            self.drain().await?;
            let left = end.saturating_sub(self.clock.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            self.stride(self.next().map_or(left, |next| next.min(left))).await?;
        }
    }

    /// Lets time pass until these jobs have ended, as far as time alone can help.
    pub(super) async fn run_to_their_end(&mut self, jobs: &[JobId]) -> Result<()> {
        for _ in 0..MOST_STRIDES {
            self.drain().await?;
            if self.have_ended(jobs).await? || self.is_held_up() {
                return Ok(());
            }
            let Some(next) = self.next() else { return Ok(()) };
            self.stride(next).await?;
        }
        Ok(())
    }

    async fn have_ended(&self, jobs: &[JobId]) -> Result<bool> {
        for &job in jobs {
            if self.store.job(job).await?.is_some_and(|job| !job.state.is_ended()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the last drain gave up waiting for bodies.
    fn is_held_up(&self) -> bool {
        self.on_duty.as_ref().is_some_and(|on_duty| matches!(on_duty.stage, Stage::Bodies { .. }))
    }

    /// How long until time alone does something, if it does.
    fn next(&self) -> Option<Duration> {
        let now = self.clock.now();
        let moment = self.store.next_moment(now).map(|moment| moment.since(now));
        let timeout = match self.on_duty.as_ref()?.stage {
            Stage::Bodies { timeout } => timeout.and_then(|end| end.checked_sub(self.clock.elapsed())),
            Stage::Busy | Stage::Drained(_) | Stage::Back => None,
        };
        let stride = self.is_held_up().then_some(STRIDE);
        [moment, timeout, stride].into_iter().flatten().filter(|wait| !wait.is_zero()).min()
    }

    /// Moves the clock, and keeps house as a beat of the worker does.
    async fn stride(&self, time: Duration) -> Result<()> {
        self.hands.advance(time);
        let Some(OnDuty { worker, .. }) = &self.on_duty else { return Ok(()) };
        let beat = Beat {
            worker: worker.id(),
            lease: LEASE,
            every: LEASE / 3,
            // Those are renewed by the worker itself.
            leases: Vec::new(),
            permits: Vec::new(),
            report: None,
        };
        self.store.extend(beat).await.map(drop)
    }

    /// What happened since this was last asked, and what is left.
    pub(super) async fn told(&mut self) -> Result<Drained> {
        let mut drained = Drained { runs: std::mem::take(&mut self.runs), ..Drained::default() };
        drained.running = self.list(State::Running).await?;
        let mut pending = self.list(State::Ready).await?;
        pending.extend(self.list(State::Scheduled(ScheduledReason::Delay)).await?);
        pending.truncate(MOST_TOLD);
        for job in pending {
            // It may have been deleted meanwhile.
            let Some(why) = self.store.explain(job.id).await? else { continue };
            let missing_states = match Registry::find(&why.job.task)? {
                Some(definition) => definition.missing_states(&self.states),
                None => Vec::new(),
            };
            drained.waiting.push(Waiting { why, missing_states });
        }
        drained.pending = self.store.counts().await?.tasks.iter().map(|counts| counts.pending()).sum();
        Ok(drained)
    }

    /// Jobs in a state of this name, in the order of a store's lists, as many as are told.
    async fn list(&self, state: State) -> Result<Vec<Job>> {
        let (mut jobs, mut filter) = (Vec::new(), Filter { state: Some(state), ..Filter::default() });
        loop {
            filter.limit = MOST_TOLD - jobs.len();
            let page = self.store.list(filter.clone()).await?;
            jobs.extend(page.jobs);
            filter.after = page.reached;
            if filter.after.is_none() || jobs.len() >= MOST_TOLD {
                return Ok(jobs);
            }
        }
    }
}
