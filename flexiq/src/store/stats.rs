//! What `stats` answers: the facts of a whole store at one moment. `queue/stats.rs` draws the conclusions from them.
//!
//! A store looks at what it counts anyway, so that asking costs the same however much waits; each list in it has a bound
//! that does not grow with jobs or partitions.

use crate::clock::Timestamp;
use crate::name::Name;
use crate::store::explanation::Cause;
use crate::store::samples::StoredSample;
use crate::store::types::{Limits, Scope, Standing, TaskCounts, WorkerId};

/// The oldest ready job of a task is looked for among the heads of so many lanes: of each partition one for each priority.
pub const MOST_HEADS_SEEN: usize = 1_000;
/// Where many tasks have partitions they share these looks, but each has so many.
pub const LEAST_HEADS_SEEN: usize = 10;

/// The facts of a whole store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The store's moment.
    pub at: Timestamp,
    /// The queues that are known, sorted.
    pub queues: Vec<QueueFacts>,
    /// The tasks that have jobs, by queue and task, sorted.
    pub tasks: Vec<TaskFacts>,
    /// The workers that are alive, the oldest first.
    pub workers: Vec<WorkerFacts>,
    /// Each known task with its home queue, sorted.
    pub homes: Vec<(Name, Name)>,
    /// What holds for all that has a limit or a pause.
    pub standings: Vec<Standing>,
    /// The samples that are kept, the newest last.
    pub samples: Vec<StoredSample>,
    /// How many queues and tasks go by a copy of their limits that is not what holds: 0 where there is but one copy.
    pub stale: u64,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueFacts {
    /// The queue.
    pub queue: Name,
    /// Jobs that are scheduled or ready.
    pub pending: u64,
    /// Jobs that hold a lease.
    pub running: u64,
    /// Ready jobs that could start now, if workers had room for all of them.
    pub startable: u64,
    /// Each thing by which its own gate is shut.
    pub shut_by: Vec<Cause>,
}

/// A task in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFacts {
    /// How many of its jobs are in which state, with queue and task.
    pub counts: TaskCounts,
    /// Ready jobs that its own gate and those of its partitions let start now. Of one partition, at most 1,000.
    pub startable: u64,
    /// Of the ready jobs, those that are in partitions.
    pub in_partitions: u64,
    /// Since when its oldest ready job is ready: the oldest of [`MOST_HEADS_SEEN`] heads of lanes.
    pub oldest_ready_at: Option<Timestamp>,
    /// When the oldest of its runs began: of 1,000 leases of the queue.
    pub oldest_run_at: Option<Timestamp>,
    /// Each thing by which its own gate is shut.
    pub shut_by: Vec<Cause>,
}

/// A worker that was heard of within its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerFacts {
    /// Its id.
    pub worker: WorkerId,
    /// Its host and process, for people.
    pub label: String,
    /// When it registered first.
    pub since: Timestamp,
    /// When it was last heard of.
    pub beat_at: Timestamp,
    /// What it declares, also that there is no limit: of each queue that it serves, of each task that it links, and of each
    /// partition of that. Sorted by scope.
    pub declared: Vec<(Scope, Limits)>,
    /// What it last said that it does, in the words of [`Report`](super::Report).
    pub report: Option<String>,
}

impl Snapshot {
    /// Puts all in its order.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "what SQLite answers is in order"))]
    pub(crate) fn sort(&mut self) {
        self.queues.sort_by(|one, other| one.queue.cmp(&other.queue));
        self.tasks.sort_by(|one, other| one.place().cmp(&other.place()));
        self.homes.sort();
        self.standings.sort_by(|one, other| one.scope.cmp(&other.scope));
        self.workers.iter_mut().for_each(|worker| worker.declared.sort_by(|one, other| one.0.cmp(&other.0)));
    }
}

impl TaskFacts {
    fn place(&self) -> (&str, &str) {
        (&self.counts.queue, &self.counts.task)
    }
}

impl TaskCounts {
    /// Whether there is no job of it at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending() + self.running + self.succeeded + self.dead + self.cancelled + self.expired == 0
    }
}
