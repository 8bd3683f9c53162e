//! The story of a job that did not succeed.

use std::fmt;

use super::{DeadReason, JobId, State};

/// The story of a job that ended otherwise than by success.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobFailure {
    /// The job.
    pub id: JobId,
    /// Its task.
    pub task: String,
    /// How it ended: dead, cancelled or expired.
    pub state: State,
    /// Runs that ended in an error, a panic or a timeout.
    pub failures: u32,
    /// Runs in which the task asked for later.
    pub deferrals: u32,
    /// Runs whose worker was lost.
    pub losses: u32,
    /// The newest failure's message.
    pub last_error: Option<String>,
}

#[cfg(feature = "internals")]
impl JobFailure {
    /// The story of a job of which nothing but its id is known; a store outside this crate fills in the rest.
    #[doc(hidden)]
    pub fn blank(id: JobId) -> Self {
        Self {
            id,
            task: String::new(),
            state: State::Cancelled,
            failures: 0,
            deferrals: 0,
            losses: 0,
            last_error: None,
        }
    }
}

impl fmt::Display for JobFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} of task {} ", self.id, self.task)?;
        match self.state {
            State::Dead(reason) => match reason {
                DeadReason::Failures => write!(f, "is dead after {} failures", self.failures)?,
                DeadReason::Never => write!(f, "is dead: its task said that no retry helps")?,
                DeadReason::Deferrals => write!(f, "is dead after {} deferrals", self.deferrals)?,
                DeadReason::Losses => write!(f, "is dead after {} lost workers", self.losses)?,
                DeadReason::Decode => write!(f, "is dead: its payload does not fit")?,
            },
            other => write!(f, "is {other}")?,
        }
        match &self.last_error {
            Some(error) => write!(f, "; last error: {error}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for JobFailure {}
