//! What was done to a store and what it did, in order and as it is seen from outside: what the rules of gates judge.

use flexiq::JobId;
use flexiq::internals::{Change, Claim, Limits, Name, Scope};

/// One act, at a moment of the store's clock in milliseconds.
#[derive(Clone, Debug)]
pub struct Act {
    /// When.
    pub at: i64,
    /// What.
    pub deed: Deed,
}

/// What was done.
#[derive(Clone, Debug)]
pub enum Deed {
    /// A job waits: it has come, or its run has ended and it goes on.
    Waits {
        /// The job.
        job: JobId,
        /// Where.
        lane: Lane,
        /// Behind which others.
        place: Place,
    },
    /// A job that waits never starts.
    Gone {
        /// The job.
        job: JobId,
    },
    /// A lease has ended.
    Freed {
        /// Its job.
        job: JobId,
    },
    /// A claim was answered.
    Claimed {
        /// Its queue.
        queue: Name,
        /// What it had room for.
        claim: Claim,
        /// The jobs that it got, in order.
        jobs: Vec<JobId>,
        /// Whether it was told that there may be more.
        more: bool,
    },
    /// From now on this is declared, and nothing else.
    Declared {
        /// What holds for queues, tasks, and each partition of a task.
        limits: Vec<(Scope, Limits)>,
    },
    /// Something was set at runtime, or taken back.
    Set {
        /// Where.
        scope: Scope,
        /// What.
        change: Change,
    },
    /// A run has said that nothing should start for a while.
    Held {
        /// Of what.
        scope: Scope,
        /// Until then.
        until: i64,
    },
}

/// The jobs of one task, or of one partition of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Their queue.
    pub queue: Name,
    /// Their task.
    pub task: Name,
    /// Their partition; empty where they have none.
    pub partition: String,
}

/// Where a job stands in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Higher first.
    pub priority: i8,
    /// When it is due: what is due earlier is older.
    pub due: i64,
}

impl Lane {
    /// The gates that its jobs go through.
    pub fn gates(&self) -> Vec<Scope> {
        let mut scopes = vec![Scope::Queue(self.queue.clone()), Scope::Task(self.task.clone())];
        if !self.partition.is_empty() {
            scopes.push(Scope::Partition(self.task.clone(), self.partition.clone()));
        }
        scopes
    }
}
