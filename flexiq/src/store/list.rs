//! list: jobs by the page, in the order in which a store has them anyway, so that a page costs the same however many there
//! are.
//!
//! Queue by queue in the order of their names; in each, state by state in the order of a job's life, so that a job that
//! moves on meanwhile is met again rather than missed; and in each state:
//!
//! | state | order |
//! |---|---|
//! | scheduled | by due time |
//! | ready | by task and partition; in each by priority and age, as they will start. Unpartitioned jobs come first; the order of partitions is the store's own |
//! | running | by the end of the lease |
//! | succeeded, dead, cancelled, expired | those that are kept longest first: of all but succeeded, the newest ends |
//!
//! Ties go by id.

use crate::clock::Timestamp;
use crate::job::{Job, JobId, State};
use crate::name::Name;

/// A page looks at no more jobs than this, whether they are wanted or not,
pub const MOST_LOOKED_AT: usize = 1_000;
/// and answers no more than this.
pub const MOST_LISTED: usize = 1_000;

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this queue.
    pub queue: Option<Name>,
    /// Of this task.
    pub task: Option<Name>,
    /// In a state of this name, whatever its reason.
    pub state: Option<State>,
    /// After what the page before had reached.
    pub after: Option<Reached>,
    /// At most this many: at least 1, and never more than [`MOST_LISTED`].
    pub limit: usize,
}

/// A part of a list. It may hold fewer jobs than were asked for, or none, and still not be the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The jobs, all of one queue.
    pub jobs: Vec<Job>,
    /// How far the list has come. `None` at its end.
    pub reached: Option<Reached>,
}

/// How far a list has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The queue that it is in.
    pub queue: Name,
    /// The code of the state that it is in.
    pub state: u8,
    /// The last job of this queue and state that was looked at, if any was.
    pub last: Option<Listed>,
}

/// Where a job stands among those of its queue and state. It need not be there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Of a ready job, its task; otherwise empty.
    pub task: String,
    /// Of a ready job, its partition.
    pub partition: String,
    /// Of a ready job, its priority.
    pub priority: i8,
    /// When it is due, its lease ends, or its retention.
    pub moment: Timestamp,
    /// The job.
    pub id: JobId,
}

impl Listed {
    /// The place of a job that is not ready.
    pub fn at(moment: Timestamp, id: JobId) -> Self {
        Self { task: String::new(), partition: String::new(), priority: 0, moment, id }
    }

    /// The place behind all jobs of a lane.
    pub(crate) fn behind(task: String, partition: String) -> Self {
        let moment = Timestamp::from_millis(i64::MAX);
        Self { task, partition, priority: i8::MIN, moment, id: JobId::from_bytes([0xff; 16]) }
    }
}

impl Filter {
    /// How many jobs a page holds at most.
    pub(crate) fn most(&self) -> usize {
        self.limit.clamp(1, MOST_LISTED)
    }
}
