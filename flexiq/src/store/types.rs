//! What goes into the verbs of a store and what comes out of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::id::id;
use crate::job::{Due, Hold, JobFailure, JobId, Notes, SetbackKind, State, Transition, Value};
use crate::name::Name;
use crate::policy::Rate;
use crate::store::permits::PermitId;
use crate::store::report::MOST_REPORT_BYTES;
use crate::store::schedules::{DueTick, Schedule};
use crate::store::unique::Unique;

id! {
    /// The id of one running worker, new at every start.
    WorkerId
}

id! {
    /// Someone who waits until there is room for its jobs, new for each enqueue that waits.
    ProducerId
}

/// What is done when a store is opened that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Absent {
    /// It is created.
    #[default]
    Create,
    /// Nothing is written, and opening is refused.
    Refuse,
}

/// A job whose queue is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobKey {
    /// Its queue.
    pub queue: Name,
    /// Its id.
    pub id: JobId,
}

/// Encoded arguments, and how they are encoded.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// 0 is JSON.
    pub codec: u8,
    /// The encoded arguments.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Payload {
    // Payloads may hold secrets: they are never shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.bytes.len())
    }
}

/// Jobs to be stored in one queue.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// The queue.
    pub queue: Name,
    /// The jobs, in order.
    pub jobs: Vec<NewJob>,
    /// The `max_pending` that the caller's handle declares for the queue. An override stands above it.
    pub max_pending: Option<u64>,
    /// Who stands in line if there is no room; nobody, where a refusal is all that is wanted.
    pub producer: Option<ProducerId>,
}

/// One job to be stored.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id.
    pub id: JobId,
    /// Whether the caller chose it, so that it may lie in another queue already. A new one cannot.
    pub is_given: bool,
    /// Its task.
    pub task: Name,
    /// The partition of its task; empty where the task has none.
    pub partition: String,
    /// The pending jobs of its partition that its task allows. An override stands above it.
    pub max_pending_per_partition: Option<u64>,
    /// Its arguments.
    pub payload: Payload,
    /// Higher first, from −100 to 100.
    pub priority: i8,
    /// When it is due. What is due now or earlier is ready, and as old as the store's now.
    pub due: Due,
    /// How long after its due time it expires unless it has started.
    pub expires: Option<Duration>,
    /// What this call sets for itself.
    pub outset: Outset,
    /// What it is the only one by, if it is.
    pub unique: Option<Unique>,
}

/// What one call sets for itself above its task's definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outset {
    /// A run longer than this is a failure.
    pub timeout: Option<Duration>,
    /// Failures forgiven.
    pub max_retries: Option<u32>,
    /// How long a success is kept.
    pub result_ttl: Option<Duration>,
}

/// What became of one job of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The id of the job that is stored.
    pub id: JobId,
    /// Whether it was there before.
    pub is_duplicate: bool,
    /// Whether it has the arguments of this call now, instead of its own.
    pub is_replaced: bool,
}

impl Enqueued {
    /// A job that was stored.
    pub fn new(id: JobId) -> Self {
        Self { id, is_duplicate: false, is_replaced: false }
    }

    /// A job that was there before.
    pub fn there(id: JobId) -> Self {
        Self { id, is_duplicate: true, is_replaced: false }
    }
}

/// What became of a retry by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retried {
    /// The job is ready again.
    Done,
    /// It has not ended, has succeeded, or is not there.
    Untouched,
    /// Another job has its unique key meanwhile.
    KeyTaken(JobId),
}

/// The right to run one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId {
    /// The job.
    pub job: JobId,
    /// The run: only the newest may finish.
    pub run: u32,
}

/// What a worker says and asks of one queue in one step.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The worker.
    pub worker: WorkerId,
    /// The queue.
    pub queue: Name,
    /// Counts the turns of this worker and queue from 1.
    pub number: u64,
    /// The runs that have ended.
    pub finishes: Vec<Finish>,
    /// What it can start; `None` claims nothing.
    pub claim: Option<Claim>,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Finish {
    /// Its lease.
    pub lease: LeaseId,
    /// What becomes of its job.
    pub transition: Transition,
    /// What it found that nothing should start for a while.
    pub hold: Option<Hold>,
    /// As what its end is told, should it be a failure or a death.
    pub setback: SetbackKind,
    /// What it told of itself last. Of a lost lease, nothing is kept of it.
    pub notes: Option<Box<Notes>>,
}

impl Finish {
    /// An end that holds nothing and has told nothing.
    pub fn new(lease: LeaseId, transition: Transition) -> Self {
        let setback = SetbackKind::of_transition(&transition);
        Self { lease, transition, hold: None, setback, notes: None }
    }
}

/// What a worker can start.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Free slots of each kind.
    pub slots: Vec<u32>,
    /// The tasks it has linked and has room for.
    pub tasks: Vec<Room>,
    /// How long a lease lasts.
    pub lease: Duration,
}

/// Room for one task.
#[derive(Clone, Debug)]
pub struct Room {
    /// The task.
    pub task: Name,
    /// The kind of slot it runs in: an index into [`Claim::slots`].
    pub slot: usize,
    /// Jobs of it that the worker takes at most.
    pub at_most: u32,
    /// Lost leases forgiven: kept with the lease, because any worker may have to reap it.
    pub max_losses: u32,
}

/// What a turn did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnAnswer {
    /// What became of each finish, in order.
    pub finished: Vec<Finished>,
    /// The jobs that are now leased to the worker, best first.
    pub claimed: Vec<Claimed>,
    /// Whether a bound ended the claim early: ask again at once.
    pub more: bool,
    /// Schedules of the queue that are due, which its caller is to advance.
    pub ticks: Vec<DueTick>,
}

/// What became of a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// The transition was carried out.
    Done,
    /// The lease was no longer this worker's: nothing changed.
    LeaseLost,
}

/// A job that is leased to the worker which claimed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The lease.
    pub lease: LeaseId,
    /// The task.
    pub task: Name,
    /// The partition; empty where the task has none.
    pub partition: String,
    /// The arguments.
    pub payload: Payload,
    /// What the call set for itself.
    pub outset: Outset,
    /// Failures before this run.
    pub failures: u32,
    /// Deferrals before this run.
    pub deferrals: u32,
    /// Losses before this run.
    pub losses: u32,
    /// When it became ready.
    pub ready_at: Timestamp,
    /// The store's moment of the claim.
    pub claimed_at: Timestamp,
    /// Whether a cap counts its lease, so that its run must not outlive it.
    pub is_capped: bool,
}

/// A worker's sign of life.
#[derive(Clone, Debug)]
pub struct Beat {
    /// The worker.
    pub worker: WorkerId,
    /// How long the leases shall last from now.
    pub lease: Duration,
    /// How long until its next beat.
    pub every: Duration,
    /// The leases it holds.
    pub leases: Vec<(LeaseId, Lapse)>,
    /// The permits that its runs hold.
    pub permits: Vec<PermitId>,
    /// What it does, in the words of [`Report`](super::Report); nothing where it is as it was. It is kept until the worker goes,
    /// unless it is longer than [`MOST_REPORT_BYTES`].
    pub report: Option<String>,
}

impl Beat {
    /// What is to be kept of its report.
    pub fn kept_report(&self) -> Option<&str> {
        self.report.as_deref().filter(|report| report.len() <= MOST_REPORT_BYTES)
    }
}

/// What it counts as if a lease runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lapse {
    /// A loss: its worker died.
    Loss,
    /// A release: its worker has stopped, and only a plain function that cannot be stopped still held it.
    Release,
}

/// What a beat learned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeatAnswer {
    /// Leases that are no longer this worker's.
    pub lost: Vec<LeaseId>,
    /// Leases whose job was cancelled.
    pub cancelled: Vec<LeaseId>,
    /// Permits that have lapsed: others may hold them now.
    pub lapsed: Vec<PermitId>,
    /// Schedules that are due, which its caller is to advance.
    pub ticks: Vec<DueTick>,
    /// Whether the store does not know this worker: it must register again.
    pub is_unknown: bool,
}

/// What a waiting worker could start.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The worker.
    pub worker: WorkerId,
    /// By queue, the tasks it has room for.
    pub queues: Vec<(Name, Arc<[Name]>)>,
}

/// Why a wait has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The queues to claim from now.
    pub queues: Vec<Name>,
}

/// A worker that starts.
#[derive(Clone, Debug)]
pub struct Hello {
    /// The worker.
    pub worker: WorkerId,
    /// `host:pid`, for people.
    pub label: String,
    /// How long a lease lasts.
    pub lease: Duration,
    /// The queues it serves, and the limits that its handle declares for them.
    pub queues: Vec<(Name, Limits)>,
    /// The tasks it has linked.
    pub tasks: Vec<Declared>,
}

/// A task as a worker declares it.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its name.
    pub task: Name,
    /// Its home queue, where its gates are decided.
    pub queue: Name,
    /// Its declaration in JSON, for producers that do not link it.
    pub json: String,
    /// Its declared limits. None is a declaration too.
    pub limits: Limits,
    /// Those of each of its partitions.
    pub per_partition: Limits,
    /// Its cron. None is a declaration too.
    pub schedule: Option<Schedule>,
}

/// How much of a task or a queue may run, start, or wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Jobs that hold a lease at once, on the whole fleet.
    pub max_concurrent: Option<u32>,
    /// Starts per period, all of which hold.
    pub rates: Vec<Rate>,
    /// Jobs of a queue that are pending at once. Of no meaning for a task.
    pub max_pending: Option<u64>,
}

/// What is limited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// A whole queue.
    Queue(Name),
    /// A task, in its home queue.
    Task(Name),
    /// Each partition of a task for itself.
    EachPartition(Name),
    /// One partition of a task: what is set for it stands above what holds for each.
    Partition(Name, String),
}

/// A change at runtime. It stands above what is declared, survives deploys, and `None` takes it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Jobs that hold a lease at once.
    MaxConcurrent(Option<u32>),
    /// Starts per period.
    Rates(Option<Vec<Rate>>),
    /// Jobs of a queue that are pending at once.
    MaxPending(Option<u64>),
    /// Whether nothing starts at all.
    Paused(bool),
}

/// What holds for a task or queue, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The task or queue.
    pub scope: Scope,
    /// What the youngest live worker that links the task, or serves the queue, declares. Of one partition: what holds
    /// for each.
    pub declared: Limits,
    /// What was set at runtime.
    pub overrides: Overrides,
    /// Whether nothing starts at all.
    pub is_paused: bool,
}

/// What was set at runtime, above what is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Jobs that hold a lease at once.
    pub max_concurrent: Option<u32>,
    /// Starts per period.
    pub rates: Option<Vec<Rate>>,
    /// Jobs of a queue that are pending at once.
    pub max_pending: Option<u64>,
}

impl Standing {
    /// What holds: the override where there is one, else the declaration.
    pub fn limits(&self) -> Limits {
        Limits {
            max_concurrent: self.overrides.max_concurrent.or(self.declared.max_concurrent),
            rates: self.overrides.rates.clone().unwrap_or_else(|| self.declared.rates.clone()),
            max_pending: self.overrides.max_pending.or(self.declared.max_pending),
        }
    }
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It succeeded, with this value.
    Value(Value),
    /// It ended otherwise.
    Failure(JobFailure),
}

/// What a cancel did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The job was pending and has ended as cancelled.
    Done,
    /// The job is running: its worker has been told.
    Requested,
    /// The job had already ended, in this state.
    AlreadyEnded(State),
}

/// What a cancel of many did, in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Jobs that were pending and have ended as cancelled.
    pub done: u64,
    /// Jobs that are running: their workers have been told.
    pub requested: u64,
    /// Whether pending jobs are left: ask again.
    pub more: bool,
}

/// How many jobs are in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By queue and task, sorted.
    pub tasks: Vec<TaskCounts>,
}

/// How many jobs of one task in one queue are in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskCounts {
    /// The queue.
    pub queue: String,
    /// The task.
    pub task: String,
    /// Waiting for their due time.
    pub scheduled: u64,
    /// Due, and waiting for a worker.
    pub ready: u64,
    /// Leased to a worker.
    pub running: u64,
    /// Succeeded, and kept.
    pub succeeded: u64,
    /// Dead, and kept.
    pub dead: u64,
    /// Cancelled, and kept.
    pub cancelled: u64,
    /// Expired, and kept.
    pub expired: u64,
}

impl TaskCounts {
    /// Jobs that are accepted and not running: scheduled or ready.
    pub fn pending(&self) -> u64 {
        self.scheduled + self.ready
    }
}
