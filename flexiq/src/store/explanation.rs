//! What `explain` answers: everything that keeps a job waiting, as data. `queue/explain.rs` puts it into words.
//!
//! It is looked up for people who ask. Each list in it has a bound, so that asking never stops the work.

use std::time::SystemTime;

use crate::clock::Timestamp;
use crate::job::{Job, JobId, ScheduledReason};
use crate::policy::Rate;
use crate::store::types::{Scope, WorkerId};

/// A cap names at most this many jobs that it counts, and as many workers are named;
pub const MOST_NAMED: usize = 10;
/// they are looked for among so many leases of the queue;
pub const MOST_LEASES_SEEN: usize = 1_000;
/// and of the jobs that stand before one, at most this many are counted.
pub const MOST_COUNTED: u64 = 1_000;

/// Why a job waits, as the store saw it at one moment.
///
/// Its [`Display`](std::fmt::Display) says it in sentences, one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The job.
    pub job: Job,
    /// The store's moment.
    pub at: SystemTime,
    /// All that keeps it waiting, the most decisive first. Empty if the job does not wait, or waits for nothing but its turn
    /// and a free slot.
    pub causes: Vec<Cause>,
}

/// One thing that keeps a job waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// It is not due yet.
    NotDue {
        /// What it waits for.
        reason: ScheduledReason,
        /// When it is due, at the latest.
        due_at: SystemTime,
    },
    /// Its queue, task or partition is paused: it opens when it is resumed.
    Paused {
        /// What is paused.
        scope: Scope,
    },
    /// No live worker both links its task and serves its queue.
    NoWorker {
        /// Those that are alive, at most 10: first those that do one of both, then the youngest.
        alive: Vec<LiveWorker>,
        /// How many are alive.
        total: u64,
    },
    /// A run was told from the outside that nothing should start for a while: it opens by itself.
    Held {
        /// What is held.
        scope: Scope,
        /// When the hold is over, unless another one begins.
        until: SystemTime,
    },
    /// As many jobs run as a cap allows: it opens when one of them ends.
    Full {
        /// What is capped.
        scope: Scope,
        /// The cap.
        max_concurrent: u32,
        /// Where it comes from.
        origin: Origin,
        /// How many jobs it counts.
        running: u64,
        /// The 10 of them that started first. Fewer where a queue has more than 1,000 running jobs.
        holders: Vec<Holder>,
    },
    /// A rate is spent: it opens by itself.
    Spent {
        /// What has the rate.
        scope: Scope,
        /// All rates that it has.
        rates: Vec<Rate>,
        /// Where they come from.
        origin: Origin,
        /// When all of them admit one more start, if nothing else starts.
        opens_at: SystemTime,
    },
    /// Jobs of the same task and partition start first.
    Behind {
        /// How many: 1,000 may be more.
        jobs: u64,
        /// Whether one of them has a higher priority; else they are older.
        outranked: bool,
    },
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The youngest live worker that links the task, or serves the queue, declares it.
    Declared,
    /// It was set at runtime.
    Set,
}

/// A running job that a cap counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The job.
    pub job: JobId,
    /// The worker that runs it.
    pub worker: WorkerId,
    /// Since when.
    pub started_at: SystemTime,
}

/// A worker that was heard of within its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveWorker {
    /// Its id.
    pub worker: WorkerId,
    /// Its host and process, for people.
    pub label: String,
    /// Whether it links the job's task.
    pub links_task: bool,
    /// Whether it serves the job's queue.
    pub serves_queue: bool,
}

impl Explanation {
    /// What a store has found; causes of one kind stay in their order: queue, task, partition.
    pub(crate) fn of(job: Job, at: Timestamp, mut causes: Vec<Cause>) -> Self {
        causes.sort_by_key(Cause::place);
        Self { job, at: at.into(), causes }
    }
}

/// For stores that live outside this crate, such as the model of this project's tests.
#[cfg(feature = "internals")]
impl Explanation {
    /// What such a store has found.
    #[doc(hidden)]
    pub fn found(job: Job, at: Timestamp, causes: Vec<Cause>) -> Self {
        Self::of(job, at, causes)
    }
}

impl Cause {
    /// First what only a person can change, last what goes on by itself.
    pub(crate) fn place(&self) -> u8 {
        match self {
            Self::NotDue { .. } => 0,
            Self::Paused { .. } => 1,
            Self::NoWorker { .. } => 2,
            Self::Held { .. } => 3,
            Self::Full { .. } => 4,
            Self::Spent { .. } => 5,
            Self::Behind { .. } => 6,
        }
    }
}
