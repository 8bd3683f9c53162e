//! What a drain tells: which jobs ran, how each run ended, and what is left waiting, and why.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use crate::job::{DeadReason, Job, JobId, ScheduledReason, Transition};
use crate::policy::notation::write_duration;
use crate::store::Explanation;
use crate::worker::Ran;

/// Of the jobs that wait or run, so many are told at most.
pub(super) const MOST_TOLD: usize = 100;
/// Its `Display` shows so many lines of each.
const MOST_SHOWN: usize = 20;

/// What happened in a drain, and what is left. Its `Display` says it, a line for each run and for each job that is left.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Drained {
    /// The runs that ended, in the order in which they did. A job that was tried again within an
    /// [`advance`](super::TestQueue::advance) has several.
    pub runs: Vec<Run>,
    /// The jobs that wait, the ready ones first, and why: at most 100 of them.
    pub waiting: Vec<Waiting>,
    /// How many wait in all.
    pub pending: u64,
    /// The jobs whose bodies had not ended when the [`patience`](super::TestQueueBuilder::patience) was over: at most 100.
    pub running: Vec<Job>,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// The job.
    pub job: JobId,
    /// Its task.
    pub task: String,
    /// The number of the run, from 1.
    pub run: u32,
    /// When it ended, by the test's clock.
    pub at: SystemTime,
    /// How it ended.
    pub end: End,
}

/// How a run ended, and what becomes of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It returned `()` or `Ok`.
    Succeeded,
    /// An error, a panic or a timeout: its job is tried again.
    Failed {
        /// What happened.
        error: String,
        /// How long the job waits.
        retry_in: Duration,
    },
    /// Its job is given up.
    Dead {
        /// Why.
        reason: DeadReason,
        /// What happened, unless it was deferred too often.
        error: Option<String>,
    },
    /// It asked for later.
    Deferred {
        /// How long the job waits.
        wait: Duration,
    },
    /// A named limit was full or spent: its job stands in line, and is called.
    InLine {
        /// How long the job waits if it is not called before.
        wait: Duration,
    },
    /// It found that nothing of its queue, task or partition should start for a while: its job is at its old place.
    Held,
    /// Its job was cancelled.
    Cancelled,
    /// The worker took it back: its job is at its old place.
    Released,
}

/// A job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The job, and all that keeps it waiting.
    pub why: Explanation,
    /// The states that its task needs and the test was not given, each as `mailer: app::Mailer of task send`.
    pub missing_states: Vec<String>,
}

impl Drained {
    /// Runs that succeeded.
    pub fn succeeded(&self) -> usize {
        self.count(|end| *end == End::Succeeded)
    }

    /// Runs that ended in an error, a panic or a timeout, also those that were the last of their job.
    pub fn failed(&self) -> usize {
        self.count(|end| match end {
            End::Failed { .. } => true,
            End::Dead { reason, .. } => *reason != DeadReason::Deferrals,
            _ => false,
        })
    }

    /// Runs in which the task asked for later, found a named limit full or spent, or held what it stands behind.
    pub fn deferred(&self) -> usize {
        self.count(|end| match end {
            End::Deferred { .. } | End::InLine { .. } | End::Held => true,
            End::Dead { reason, .. } => *reason == DeadReason::Deferrals,
            _ => false,
        })
    }

    /// Jobs that were given up.
    pub fn dead(&self) -> usize {
        self.count(|end| matches!(end, End::Dead { .. }))
    }

    fn count(&self, is_one: impl Fn(&End) -> bool) -> usize {
        self.runs.iter().filter(|run| is_one(&run.end)).count()
    }

    /// Goes on only if each job that ran has succeeded in its last run, and none is running. What waits is not looked at.
    ///
    /// # Panics
    ///
    /// If it is not so, with what happened.
    #[track_caller]
    pub fn expect_all_succeeded(self) -> Self {
        let last: HashMap<JobId, &End> = self.runs.iter().map(|run| (run.job, &run.end)).collect();
        let others = last.values().filter(|end| ***end != End::Succeeded).count();
        assert!(
            others == 0 && self.running.is_empty(),
            "of {} jobs that ran, {others} have not succeeded, and {} are still running:\n{self}",
            last.len() + self.running.len(),
            self.running.len(),
        );
        self
    }
}

impl Run {
    pub(super) fn of(ran: Ran) -> Self {
        let Ran { task, finish, at } = ran;
        let end = match finish.transition {
            Transition::Succeed { .. } => End::Succeeded,
            Transition::Schedule { reason, due, error } => {
                let wait = due.from(at).since(at);
                match reason {
                    ScheduledReason::Limit => End::InLine { wait },
                    ScheduledReason::Deferral => End::Deferred { wait },
                    ScheduledReason::Retry | ScheduledReason::Delay => {
                        End::Failed { error: error.unwrap_or_default(), retry_in: wait }
                    }
                }
            }
            Transition::Kill { reason, error } => End::Dead { reason, error },
            Transition::PutBack => End::Held,
            Transition::Release => End::Released,
            Transition::Cancel => End::Cancelled,
        };
        Self { job: finish.lease.job, task: task.to_string(), run: finish.lease.run, at: at.into(), end }
    }
}

impl Waiting {
    /// The job.
    pub fn job(&self) -> &Job {
        &self.why.job
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs ended, {} jobs wait, {} are running.",
            self.runs.len(),
            self.pending,
            self.running.len()
        )?;
        lines(f, &self.runs, self.runs.len() as u64)?;
        lines(f, &self.waiting, self.pending)?;
        for job in self.running.iter().take(MOST_SHOWN) {
            write!(f, "\nJob {} of task {} is still running.", job.id, job.task)?;
        }
        Ok(())
    }
}

fn lines(f: &mut fmt::Formatter<'_>, items: &[impl fmt::Display], total: u64) -> fmt::Result {
    for item in items.iter().take(MOST_SHOWN) {
        write!(f, "\n{item}")?;
    }
    match total.saturating_sub(MOST_SHOWN.min(items.len()) as u64) {
        0 => Ok(()),
        more => write!(f, "\n… and {more} more."),
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run {} of job {} of task {} {}", self.run, self.job, self.task, self.end)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded."),
            Self::Failed { error, retry_in } => {
                write!(f, "failed, and is tried again in {}: {error}", write_duration(*retry_in))
            }
            Self::Dead { reason, error: Some(error) } => write!(f, "was the last ({reason}): {error}"),
            Self::Dead { reason, error: None } => write!(f, "was the last ({reason})."),
            Self::Deferred { wait } => write!(f, "deferred itself for {}.", write_duration(*wait)),
            Self::InLine { wait } => {
                write!(f, "stands in line for a named limit, for {} at most.", write_duration(*wait))
            }
            Self::Held => f.write_str("held what it stands behind, and is at its old place."),
            Self::Cancelled => f.write_str("was cancelled."),
            Self::Released => f.write_str("was taken back, and is at its old place."),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.why)?;
        for missing in &self.missing_states {
            write!(f, "\n- The test was not given {missing}: write .state(..)")?;
        }
        Ok(())
    }
}
