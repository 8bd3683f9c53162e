//! What `check` answers: each thing in a store that is not as it should be, as data. `queue/doctor.rs` puts it into words.
//!
//! A finding names what it concerns and what was found there. It never shows a payload, nor a value.

use crate::job::JobId;

/// A check answers at most this many findings: one that has so many may leave more, and is asked again.
pub const MOST_FINDINGS: usize = 1_000;

/// What a check does about what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It only looks, and changes nothing.
    Nothing,
    /// It repairs all that can be repaired, and never deletes a job.
    All,
}

impl Repair {
    /// Whether anything is repaired.
    pub fn is_wanted(self) -> bool {
        self == Self::All
    }
}

/// Something in the store that is not as it should be.
///
/// Its [`Display`](std::fmt::Display) says it in sentences: where it is, what was found, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The queue that it concerns, if it concerns one.
    pub queue: Option<String>,
    /// The task that it concerns, if it concerns one and is known.
    pub task: Option<String>,
    /// The job that it concerns, if it concerns one.
    pub job: Option<JobId>,
    /// What was found, such as "the count of jobs that are ready is 3".
    pub found: String,
    /// What should be there, such as "it should be 2".
    pub expected: String,
    /// Whether it was repaired.
    pub is_repaired: bool,
}

/// What is wrong in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// A number that is kept up is another than that of what it counts.
    Count,
    /// A running job has no lease. Repaired, it has one again: whoever runs it renews that, and if nobody does, it is taken
    /// back as a lost lease.
    NoLease,
    /// A job does not stand where its state says, so that nobody would come by it. Repaired, it does.
    Place,
    /// Something stands where no job of that state is, or belongs to a job that is not there. Repaired, it is gone.
    Orphan,
    /// What is kept of a job contradicts itself.
    Contradiction,
    /// A part of a job is gone: its arguments, its value, or the name of its task. It cannot be repaired.
    Lost,
    /// A partition does not stand among the turns of its task as its jobs and its gate say.
    Turn,
    /// The permits or the line of a named limit do not go together.
    NamedLimit,
    /// Something can start, and a worker that waits for it was not told.
    Bell,
    /// A queue's copy of the limits is not what holds.
    Limits,
    /// Something is there that no version of this store writes. It cannot be repaired.
    Foreign,
    /// The database file itself is damaged. It cannot be repaired from here.
    File,
}

impl Finding {
    /// Something that is wrong, and nothing yet of where.
    pub(crate) fn new(kind: FindingKind, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            kind,
            queue: None,
            task: None,
            job: None,
            found: found.into(),
            expected: expected.into(),
            is_repaired: false,
        }
    }

    /// Names the queue that it concerns.
    pub(crate) fn in_queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Names the task that it concerns.
    pub(crate) fn of_task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Names the job that it concerns.
    pub(crate) fn of_job(mut self, job: JobId) -> Self {
        self.job = Some(job);
        self
    }

    /// Says whether it was repaired.
    pub(crate) fn repaired(mut self, is_repaired: bool) -> Self {
        self.is_repaired = is_repaired;
        self
    }
}
