//! The verbs of a store. Queue and worker speak to it; it moves bytes and limits and never sees a task's function.
//!
//! Each verb is one atomic step, takes a batch, and may be sent again after an unknown answer without doing anything
//! twice: an enqueue by its job ids, a turn by its number, a finish by (job, run). Every write about a running job
//! carries (worker, run), and a mismatch changes nothing. Times are the store's own.

mod codes;
mod explanation;
mod finding;
mod list;
mod permits;
mod report;
mod samples;
mod schedules;
mod stats;
mod story;
mod tell;
mod types;
mod unique;
mod url;

#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use codes::state_code;
pub use explanation::{
    Cause, Explanation, Holder, LiveWorker, MOST_COUNTED, MOST_LEASES_SEEN, MOST_NAMED, Origin,
};
pub use finding::{Finding, FindingKind, MOST_FINDINGS, Repair};
pub use list::{Filter, Listed, MOST_LISTED, MOST_LOOKED_AT, Page, Reached};
pub use permits::{Ask, Asked, GiveBack, PermitId};
pub use report::{Ended, MOST_REPORT_BYTES, MOST_TASKS_REPORTED, Report, Runs};
pub use samples::{SAMPLES_KEPT, StoredSample};
pub use schedules::{
    DueTick, KEPT_ASLEEP, MOST_SCHEDULES, MOST_TOLD, Planning, Schedule, Standby, TOLD_FOR, Tick, Ticked,
};
pub use stats::{LEAST_HEADS_SEEN, MOST_HEADS_SEEN, QueueFacts, Snapshot, TaskFacts, WorkerFacts};
pub use tell::Tell;
pub use types::{
    Absent, Beat, BeatAnswer, Cancelled, Change, Claim, Claimed, Counts, Declared, Enqueue, Enqueued, Finish,
    Finished, Hello, JobKey, Lapse, LeaseId, Limits, NewJob, Outset, Overrides, Payload, ProducerId, Retried,
    Room, Scope, Standing, Stored, Swept, TaskCounts, Turn, TurnAnswer, Wait, Wake, WorkerId,
};
pub use unique::{OnDuplicate, Release, Unique, UniqueKey};

use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::job::{Job, JobId, Story};
use crate::name::Name;

/// One step of a store, under way.
///
/// Dropping it gives up waiting for the answer; the step itself may still happen.
pub type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A producer that waits for room enqueues once more this often, whether it was told or not,
pub const LONGEST_STAND: Duration = Duration::from_secs(10);
/// and keeps its place so long: until it comes again, and the time of a call.
pub const KEPT_IN_LINE: Duration = Duration::from_secs(15);

/// What every store can do.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// The store's file or address for messages, without a password.
    fn place(&self) -> &str;

    /// The clock whose moments the store uses.
    fn clock(&self) -> &Clock;

    /// Stores new jobs of one queue, all or none, and rings for those that are ready.
    ///
    /// An id that is already stored stores nothing and answers the job that is there, unless that job calls another
    /// task or lies in another queue, which is [`Error::Invalid`](crate::Error::Invalid). Other queues are only looked at
    /// for ids that the caller chose, and not in the same step where each queue has steps of its own.
    ///
    /// A job whose unique key another job of the queue has, stored before or earlier in the batch, is not stored either, and
    /// answers that one; its [`OnDuplicate`] says what becomes of it. Arguments of another partition are
    /// [`Error::Invalid`](crate::Error::Invalid), for a job stays in its partition. Ids are looked for before keys, so that
    /// a batch which is sent again finds itself and takes nobody's key.
    ///
    /// If the queue would then hold more than its `max_pending`, nothing is stored and the answer is
    /// [`Error::QueueFull`](crate::Error::QueueFull), or if a partition would,
    /// [`Error::PartitionFull`](crate::Error::PartitionFull): whichever comes first in the order of the jobs. What is
    /// stored already is found first and not counted.
    ///
    /// Room is kept for those who stand in line for it: in the line of the queue, or of one partition of it, in the order
    /// of their arrival. Whoever comes, a producer or not, finds as taken what those before it want. A refused batch
    /// with a producer stands in the line of what refused it, for [`KEPT_IN_LINE`] unless it comes again; it keeps its
    /// place there, and leaves any other, and all when it is stored. One that would not even fit alone is
    /// [`Error::Invalid`](crate::Error::Invalid) and does not stand in line.
    fn enqueue(&self, batch: Enqueue) -> Step<'_, Vec<Enqueued>>;

    /// Waits until it is worth while to enqueue once more for a producer that was refused: there is room for it behind
    /// those that stand before it, or [`LONGEST_STAND`] is over.
    ///
    /// Room that came since it was refused counts. What makes room for some tells only as many as it makes room for.
    fn room(&self, queue: &Name, producer: ProducerId) -> Step<'_, ()>;

    /// Takes a producer out of the line that it stands in, in the background. One whose leaving is lost is taken out when it
    /// has not come again for [`KEPT_IN_LINE`].
    fn leave_line(&self, queue: &Name, producer: ProducerId);

    /// A worker's finishes and its next claim of one queue, in this order, in one step.
    ///
    /// A job is claimed if every gate of its partition, its task and its queue is open: pause, hold, cap, rates. All are
    /// checked, and then all are charged; a job that is refused spends nothing and stays where it is. While other workers
    /// wait that could start the same, a claim takes at most its share.
    ///
    /// The partitions of a task take turns: among those that are open, the highest priority of a head first, then the one
    /// that has waited longest for its turn. A partition's wait begins with its last start, or when something of it
    /// becomes ready; one that is new stands before the one that was served last. Where that is the same moment, the
    /// older head goes first. A task stands in its queue with the head of the partition whose turn it is, or with its
    /// best job that has no partition.
    ///
    /// The same number of the same worker and queue again answers the same and changes nothing. A run whose job was
    /// cancelled meanwhile ends the job as cancelled, and moves no counter, unless the run succeeded.
    fn turn(&self, turn: Arc<Turn>) -> Step<'_, TurnAnswer>;

    /// Renews leases and permits, says that the worker lives, and keeps house for all: promotes, expires, reaps, prunes, and
    /// frees permits that nobody has renewed.
    fn extend(&self, beat: Beat) -> Step<'_, BeatAnswer>;

    /// Keeps what running jobs tell of themselves: the newest progress, and what is new of their logs. A run that is not this
    /// worker's any more, or not the newest of its job, changes nothing.
    fn tell(&self, tell: Tell) -> Step<'_, ()>;

    /// Takes a permit of a named limit for a run, or puts its job into the limit's line. A run that has it keeps it.
    ///
    /// It is granted if nobody stands in line before it, and the number and the rates that it asks with leave room beside
    /// the permits that are held, those that are reserved, and the starts that are logged. Limits of different names, or of
    /// one name with different keys, know nothing of each other; queues and tasks make no difference.
    ///
    /// Whoever is first in line is called when there is room: the permit is reserved for five seconds, and the job, if it
    /// waits for a limit, is due at once, also when its run has not ended yet.
    fn acquire(&self, ask: Ask) -> Step<'_, Asked>;

    /// Gives permits back, and calls those whose turn has come. One that is not held any more changes nothing, but that a
    /// hold takes effect in any case.
    fn give_back(&self, permits: Vec<GiveBack>) -> Step<'_, ()>;

    /// Waits until one of the queues may have something that this worker can start, and answers which.
    ///
    /// A bell that was rung before the wait began counts, and a wait takes one of them: what its claim leaves no room for
    /// must wake another worker. Dropping the wait loses no bell. A worker waits once at a time in a queue, and not for what
    /// it was woken for before it has claimed.
    fn wait(&self, wait: Wait) -> Step<'_, Wake>;

    /// Waits until this worker should look at its leases at once: one of its jobs was cancelled, and no beat has told it.
    fn called(&self, worker: WorkerId) -> Step<'_, ()>;

    /// Makes a worker and what its tasks declare known, before its first turn.
    fn register(&self, hello: Hello) -> Step<'_, ()>;

    /// Forgets a worker that has stopped. Leases that it still holds lapse as they were marked.
    fn retire(&self, worker: WorkerId) -> Step<'_, ()>;

    /// The known tasks and their declarations in JSON, each as the newest worker that linked it gave it.
    fn declarations(&self) -> Step<'_, Vec<(Name, String)>>;

    /// The queues that are known: served by a worker or enqueued to at some time.
    fn queues(&self) -> Step<'_, Vec<Name>>;

    /// A job by its id, wherever it lies.
    fn job(&self, id: JobId) -> Step<'_, Option<Job>>;

    /// What is kept of how a job went. `None` if there is no such job.
    fn story(&self, id: JobId) -> Step<'_, Option<Story>>;

    /// The encoded arguments of a job, wherever it lies. `None` if there is no such job.
    fn payload(&self, id: JobId) -> Step<'_, Option<Payload>>;

    /// A page of jobs: queue by queue, state by state, and in each state in the order that the store has anyway, which
    /// [`Filter`]'s module tells.
    ///
    /// A page is of one queue and looks at [`MOST_LOOKED_AT`] jobs at most, whether they are wanted or not, so that it may be
    /// short or empty before the end. A list is of many moments: a job that moves on meanwhile may be met twice, and one
    /// that is put back (retried, released) may be missed.
    fn list(&self, filter: Filter) -> Step<'_, Page>;

    /// Waits until a job has ended, and answers how. `None` if there is no such job.
    fn ended(&self, key: JobKey) -> Step<'_, Option<Stored>>;

    /// Cancels a job: a pending one ends at once, a running one is told to stop. `None` if there is no such job.
    fn cancel(&self, id: JobId) -> Step<'_, Option<Cancelled>>;

    /// Cancels the jobs of a partition, wherever they lie: the running ones, and at most 1,000 of the pending.
    fn cancel_partition(&self, task: Name, partition: String) -> Step<'_, Swept>;

    /// Makes a dead, cancelled or expired job ready again, with all its budgets fresh. It takes its unique key again, unless
    /// that is free by time alone; where another job has it, nothing is changed.
    fn retry(&self, id: JobId) -> Step<'_, Retried>;

    /// Deletes a job that has ended. False if it has not, or does not exist.
    fn delete(&self, id: JobId) -> Step<'_, bool>;

    /// Changes what was set at runtime, and wakes who may start now. To resume also ends a hold.
    fn limit(&self, scope: Scope, change: Change) -> Step<'_, ()>;

    /// What holds for each task, queue and partition that has a limit or a pause, sorted by scope.
    fn limits(&self) -> Step<'_, Vec<Standing>>;

    /// Sets, takes back or pauses a schedule of one queue. To take back or to pause what is not there does nothing, nor to take
    /// back what a live worker declares.
    ///
    /// One that is set anew with the same cron keeps the tick that it has reached; with another, it begins now. One that is
    /// resumed begins now. In a queue with [`MOST_SCHEDULES`], those that are declared among them, one more is
    /// [`Error::Invalid`](crate::Error::Invalid); what workers declare is never refused.
    ///
    /// What workers declare is a schedule under the name of its task, in the task's home queue, as long as one lives that
    /// does; of those who link the task, the youngest living one's word holds, also that there is none. When it ends, the
    /// schedule sleeps, and keeps the tick that it has reached for [`KEPT_ASLEEP`].
    fn schedule(&self, queue: Name, name: Name, planning: Planning) -> Step<'_, ()>;

    /// The schedules of all queues, sorted by name and queue.
    fn schedules(&self) -> Step<'_, Vec<Standby>>;

    /// Advances a schedule that was due, and enqueues its job, in one step; or does nothing if it shows anything else than was
    /// told.
    ///
    /// Which are due is told by [`turn`](Self::turn) to whoever claims from the queue, and by [`extend`](Self::extend); nobody
    /// else is told of the same for [`TOLD_FOR`]. Where there is no room for the job, the tick is skipped.
    fn tick(&self, tick: Tick) -> Step<'_, Ticked>;

    /// All that keeps a job waiting: that it is not due; or, once it is ready, each shut gate of its queue, its task and its
    /// partition, that no live worker takes it, and what stands before it. `None` if there is no such job.
    ///
    /// It changes nothing, and its work has a bound, however much waits. What time alone does is told as it was when a claim
    /// or a beat last did it. Where each queue has steps of its own, who is alive and where a limit comes from is looked up
    /// behind the rest.
    fn explain(&self, id: JobId) -> Step<'_, Option<Explanation>>;

    /// How many jobs are in which state, by queue and task. Like [`stats`](Self::stats), it looks at what is counted anyway.
    fn counts(&self) -> Step<'_, Counts>;

    /// The facts of the whole store at one moment: what waits and runs, since when, which gates are shut, and who is alive.
    ///
    /// It changes nothing, and its work does not grow with the number of jobs. What time alone does is told as it was when
    /// a claim or a beat last did it. Where each queue has steps of its own, each is seen at its own moment.
    fn stats(&self) -> Step<'_, Snapshot>;

    /// Keeps a sample of what waits beside the one before it, unless somebody else has kept one after `after`, the newest that
    /// the caller has seen. Answers whether it is kept.
    fn keep_sample(&self, after: Option<Timestamp>, text: String) -> Step<'_, bool>;

    /// Looks whether everything that is stored goes together, and repairs what does not if that is wanted; answers at most
    /// [`MOST_FINDINGS`]. In a sound store it finds nothing, whatever is under way.
    ///
    /// Its time grows with the store. Each of its steps has a bound where others wait for it.
    fn check(&self, repair: Repair) -> Step<'_, Vec<Finding>>;
}

/// The refusal of arguments that cannot replace those of a job, because they belong to another partition.
fn other_partition(job: JobId) -> Error {
    Error::Invalid {
        what: "arguments that replace those of a job".into(),
        given: format!("some of another partition than that of job {job}"),
        accepted: "those of its own: make the partition a part of the unique key".into(),
    }
}

/// The refusal of a batch that would not fit into an empty queue or partition.
fn never_fits(jobs: u64, max_pending: u64) -> Error {
    Error::Invalid {
        what: "batch that waits for room".into(),
        given: format!("{jobs} new jobs at once"),
        accepted: format!("at most {max_pending}, which is max_pending: send several, or raise it"),
    }
}
