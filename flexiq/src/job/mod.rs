//! What is stored of one call of a task: its id, its state, its counters, and how its runs ended.
//!
//! Everything above moves these values; nothing here reads a clock or a store.

mod failure;
mod id;
mod outcome;
mod state;
mod story;
mod transition;

pub use failure::JobFailure;
pub use id::JobId;
pub use outcome::{After, Due, Held, Hold, Outcome, Value};
pub use state::{DeadReason, ScheduledReason, State};
pub(crate) use story::{LONGEST_LINE, LONGEST_PROGRESS};
pub use story::{
    Line, LogLine, MOST_BYTES, MOST_LINES, MOST_SETBACKS, Notes, Progress, Setback, SetbackKind, Story,
};
pub use transition::Transition;

use std::time::SystemTime;

/// A job as the store shows it: everything but its payload and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The queue it is stored in.
    pub queue: String,
    /// The task it calls.
    pub task: String,
    /// The partition of its task, if the task has `partition_by`.
    pub partition: Option<String>,
    /// Where it is in its life.
    pub state: State,
    /// Higher first, from −100 to 100.
    pub priority: i8,
    /// How often it was started.
    pub runs: u32,
    /// Runs that ended in an error, a panic or a timeout.
    pub failures: u32,
    /// Runs in which the task asked for later.
    pub deferrals: u32,
    /// Runs whose worker was lost.
    pub losses: u32,
    /// The newest failure's message, cut at 4 KiB.
    pub last_error: Option<String>,
    /// How far its newest run is or was, if it has said so. Gone when the next run starts.
    pub progress: Option<Progress>,
    /// Whether a running job has been told to stop.
    pub cancel_requested: bool,
    /// When it was stored.
    pub enqueued_at: SystemTime,
    /// When it is or was due: its place among the waiting.
    pub due_at: SystemTime,
    /// When it expires unless it starts, if it has `expires`.
    pub expires_at: Option<SystemTime>,
    /// When its newest run started.
    pub started_at: Option<SystemTime>,
    /// When it ended.
    pub ended_at: Option<SystemTime>,
}

impl Job {
    /// The attempt that its next or present run is: `failures + 1`.
    pub fn attempt(&self) -> u32 {
        self.failures.saturating_add(1)
    }
}

/// For stores that live outside this crate, such as the model of this project's tests.
#[cfg(feature = "internals")]
impl Job {
    /// A ready job of which nothing but its id is known; the store fills in the rest.
    #[doc(hidden)]
    pub fn blank(id: JobId) -> Self {
        Self {
            id,
            queue: String::new(),
            task: String::new(),
            partition: None,
            state: State::Ready,
            priority: 0,
            runs: 0,
            failures: 0,
            deferrals: 0,
            losses: 0,
            last_error: None,
            progress: None,
            cancel_requested: false,
            enqueued_at: SystemTime::UNIX_EPOCH,
            due_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
            started_at: None,
            ended_at: None,
        }
    }
}

/// An error message has at most so many bytes.
const LONGEST_ERROR: usize = 4 * 1024;

/// Cuts an error message at 4 KiB.
pub(crate) fn cut_error(message: String) -> String {
    if message.len() <= LONGEST_ERROR {
        return message;
    }
    let mut cut = String::with_capacity(LONGEST_ERROR);
    push_cut(&mut cut, &message, LONGEST_ERROR);
    cut
}

/// Adds a text to another; one of more bytes than `most` is cut, at a character, and the cut marked.
pub(crate) fn push_cut(to: &mut String, text: &str, most: usize) {
    const MARK: &str = "… (cut)";
    if text.len() <= most {
        return to.push_str(text);
    }
    let end = (0..=most.saturating_sub(MARK.len())).rev().find(|&at| text.is_char_boundary(at));
    to.push_str(&text[..end.unwrap_or(0)]);
    to.push_str(MARK);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_cut_at_a_character_and_marked() {
        assert_eq!(cut_error("short".into()), "short");
        let cut = cut_error("ä".repeat(5_000));
        assert!(cut.len() <= 4_096 && cut.ends_with("ä… (cut)"), "{} bytes", cut.len());
    }
}
