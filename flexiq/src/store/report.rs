//! What a worker says that it does, with each beat: its slots, what it runs, and how its runs have ended since its start.
//!
//! To a store it is a text, kept as long as the worker lives. The worker writes it, and `queue/stats.rs` reads it.

use serde::{Deserialize, Serialize};

/// A report names at most this many tasks, those that were started most lately,
pub const MOST_TASKS_REPORTED: usize = 200;
/// and is at most so many bytes long: a store keeps no longer one.
pub const MOST_REPORT_BYTES: usize = 16 * 1024;

/// What a worker does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The slots for `async` functions: all, and those in use.
    pub async_slots: (u32, u32),
    /// The slots for plain functions.
    pub plain_slots: (u32, u32),
    /// What it runs and has run, by queue and task.
    pub runs: Vec<Runs>,
    /// How many more queues and tasks it has run jobs of than are told.
    pub left_out: u64,
}

/// What a worker runs and has run of one task from one queue, since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Runs {
    /// The queue.
    pub queue: String,
    /// The task.
    pub task: String,
    /// Whether its function is a plain one.
    #[serde(skip_serializing_if = "is_false")]
    pub is_plain: bool,
    /// Runs at this moment.
    pub running: u64,
    /// When the oldest of them began, in milliseconds of the store's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_run_at: Option<i64>,
    /// Runs that have ended, by outcome.
    pub ended: Ended,
    /// Jobs that were started.
    pub started: u64,
    /// The sum of their times from ready to start, in milliseconds.
    pub waited_ms: u64,
    /// The sum of the times of the runs that have ended, in milliseconds.
    pub ran_ms: u64,
}

/// How many runs have ended how. What is not told is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Ended {
    /// The function returned `()` or `Ok`.
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: u64,
    /// An error, a panic or a timeout.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// The task asked for later, held something, or was refused a named limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub deferred: u64,
    /// The payload did not fit the parameters.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecodable: u64,
    /// The worker took the run back: it shuts down, or could not be sure of its lease.
    #[serde(skip_serializing_if = "is_zero")]
    pub released: u64,
    /// The job was cancelled.
    #[serde(skip_serializing_if = "is_zero")]
    pub cancelled: u64,
    /// The lease was lost before the run ended: another worker may have the job.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Ended {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { succeeded, failed, deferred, undecodable, released, cancelled, lost } = *self;
        succeeded + failed + deferred + undecodable + released + cancelled + lost
    }
}

impl Report {
    /// The report as a text that a store keeps. What does not fit is left out, the last first.
    pub(crate) fn into_text(mut self) -> String {
        if self.runs.len() > MOST_TASKS_REPORTED {
            self.leave_out(MOST_TASKS_REPORTED);
        }
        loop {
            let text = serde_json::to_string(&self).expect("a report has nothing that JSON has not");
            if text.len() <= MOST_REPORT_BYTES || self.runs.is_empty() {
                return text;
            }
            self.leave_out(self.runs.len() * MOST_REPORT_BYTES / (text.len() + 1));
        }
    }

    fn leave_out(&mut self, keep: usize) {
        self.left_out += (self.runs.len() - keep) as u64;
        self.runs.truncate(keep);
    }

    /// Reads what a worker wrote, perhaps one of another version. What cannot be read says nothing.
    pub(crate) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_tasks(tasks: usize, name_length: usize) -> Report {
        let runs = |n| Runs { queue: "q".into(), task: format!("{n:0>name_length$}"), ..Runs::default() };
        Report { runs: (0..tasks).map(runs).collect(), ..Report::default() }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let ended = Ended { failed: 2, lost: 1, ..Ended::default() };
        let mut report = of_tasks(3, 1);
        report.runs[1] =
            Runs { running: 2, oldest_run_at: Some(7), ended, started: 5, ..report.runs[1].clone() };
        report.async_slots = (100, 2);
        assert_eq!(Report::read(&report.clone().into_text()), report);
    }

    #[test]
    fn a_report_never_grows_beyond_its_bounds_and_says_what_is_missing() {
        for (tasks, name_length) in [(200, 1), (1_000, 1), (200, 100), (5_000, 100)] {
            let text = of_tasks(tasks, name_length).into_text();
            assert!(text.len() <= MOST_REPORT_BYTES, "{tasks} tasks: {} bytes", text.len());
            let read = Report::read(&text);
            assert!(read.runs.len() <= MOST_TASKS_REPORTED);
            assert_eq!(read.runs.len() as u64 + read.left_out, tasks as u64);
            assert_eq!(read.runs[0].task, format!("{:0>name_length$}", 0));
        }
    }

    #[test]
    fn what_another_version_wrote_is_read_as_far_as_it_goes() {
        assert_eq!(Report::read("{\"async_slots\":[3,1],\"moods\":[]}").async_slots, (3, 1));
        assert_eq!(Report::read("nonsense"), Report::default());
    }
}
