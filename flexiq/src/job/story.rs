//! The story of a job: how far its newest run is, what its runs have logged, and how they failed.
//!
//! All of it is bounded, so that it can be kept with every job, and none of it decides anything.

use std::time::SystemTime;

use super::{DeadReason, Outcome, Transition};
use crate::clock::Timestamp;

/// The newest log lines that are kept of a job,
pub const MOST_LINES: usize = 100;
/// and its newest setbacks;
pub const MOST_SETBACKS: usize = 10;
/// of either, the messages together have at most so many bytes,
pub const MOST_BYTES: usize = 16 * 1024;
/// and one line at most so many;
pub(crate) const LONGEST_LINE: usize = 1024;
/// the words of a progress as well.
pub(crate) const LONGEST_PROGRESS: usize = 200;

/// How far the newest run of a job is, as its task last said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// How much is done.
    pub done: u64,
    /// Of how much, if that is known.
    pub total: Option<u64>,
    /// What the task says of it, cut at 200 bytes.
    pub message: String,
    /// When it said so.
    pub at: SystemTime,
}

impl Progress {
    pub(crate) fn new(done: u64, total: Option<u64>, message: String, at: Timestamp) -> Self {
        Self { done, total, message, at: at.into() }
    }
}

/// What is kept of how a job went: what its runs have logged and how they failed, each oldest first.
///
/// A retry by hand keeps it; it goes with its job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Story {
    /// What its runs have logged: the newest 100 lines, of at most 16 KiB.
    pub log: Vec<LogLine>,
    /// Its failures and losses, and what it died of: the newest ten, of at most 16 KiB.
    pub setbacks: Vec<Setback>,
}

/// A line that a run has logged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// When.
    pub at: SystemTime,
    /// The number of the run.
    pub run: u32,
    /// What it said, cut at 1 KiB.
    pub message: String,
}

impl LogLine {
    pub(crate) fn new(at: Timestamp, run: u32, message: String) -> Self {
        Self { at: at.into(), run, message }
    }
}

/// A run that ended in a failure or a loss, or that was the death of its job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setback {
    /// When the store heard of it.
    pub at: SystemTime,
    /// The number of the run.
    pub run: u32,
    /// The attempt that it was: failures before it, and one.
    pub attempt: u32,
    /// What happened,
    pub kind: SetbackKind,
    /// and in words, cut at 4 KiB. No payload is in it.
    pub message: String,
    /// Why the job was dead with it, if it was.
    pub death: Option<DeadReason>,
}

/// What set a job back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SetbackKind {
    /// The task returned an error.
    Error,
    /// The task panicked.
    Panic,
    /// The run took longer than its timeout.
    Timeout,
    /// The payload does not fit the task's parameters.
    Undecodable,
    /// The task asked for later, once too often.
    Deferral,
    /// The lease ran out: its worker died, or could not reach the store.
    Loss,
}

impl SetbackKind {
    /// What a run is told as that ended so, should it be a setback.
    pub(crate) fn of_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Panicked { .. } => Self::Panic,
            Outcome::TimedOut(_) => Self::Timeout,
            Outcome::Undecodable { .. } => Self::Undecodable,
            Outcome::Deferred(_) | Outcome::Held(_) | Outcome::Limited(_) => Self::Deferral,
            Outcome::Failed { .. } | Outcome::Succeeded(_) | Outcome::Released | Outcome::Cancelled => {
                Self::Error
            }
        }
    }

    /// What a run is told as of which nothing is known but what became of its job.
    pub(crate) fn of_transition(transition: &Transition) -> Self {
        match transition {
            Transition::Kill { reason: DeadReason::Deferrals, .. } => Self::Deferral,
            Transition::Kill { reason: DeadReason::Decode, .. } => Self::Undecodable,
            _ => Self::Error,
        }
    }
}

/// What a run has told of itself and its store does not know yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// How far it is, if it has said so.
    pub progress: Option<Progress>,
    /// What it has logged, oldest first.
    pub lines: Vec<Line>,
}

/// A line that a run has logged, on its way to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counts the lines of its run from 1, so that one which is told again is known.
    pub number: u32,
    /// When it was logged.
    pub at: Timestamp,
    /// What it says.
    pub message: String,
}

/// For stores that live outside this crate, such as the model of this project's tests.
#[cfg(feature = "internals")]
impl Story {
    /// A story of these parts: of each line when, run and message; of each setback also attempt, kind and death.
    #[doc(hidden)]
    pub fn of(
        log: impl IntoIterator<Item = (Timestamp, u32, String)>,
        setbacks: impl IntoIterator<Item = (Timestamp, u32, u32, SetbackKind, String, Option<DeadReason>)>,
    ) -> Self {
        let line = |(at, run, message)| LogLine::new(at, run, message);
        let setback = |(at, run, attempt, kind, message, death): (Timestamp, _, _, _, _, _)| Setback {
            at: at.into(),
            run,
            attempt,
            kind,
            message,
            death,
        };
        Self {
            log: log.into_iter().map(line).collect(),
            setbacks: setbacks.into_iter().map(setback).collect(),
        }
    }
}

#[cfg(feature = "internals")]
impl Progress {
    /// A progress, as a worker tells it.
    #[doc(hidden)]
    pub fn told(done: u64, total: Option<u64>, message: &str, at: Timestamp) -> Self {
        Self::new(done, total, message.into(), at)
    }
}
