//! What one line of a ledger says.

use std::fmt;
use std::str::{FromStr, SplitAsciiWhitespace};

use flexiq::JobId;

/// One line. Moments are milliseconds of the store's clock, which in SQLite is this host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A producer is about to store this job, as one of a call.
    Intent {
        /// The call: the id of its first job.
        call: JobId,
        /// The job.
        job: JobId,
    },
    /// The call's jobs are stored.
    Stored {
        /// The call.
        call: JobId,
    },
    /// The call was refused, and nothing of it is stored.
    Refused {
        /// The call.
        call: JobId,
    },
    /// A body has begun.
    Start {
        /// When.
        at: i64,
        /// Its task.
        task: String,
        /// Its job.
        job: JobId,
        /// Its run.
        run: u32,
    },
    /// A body is about to return.
    End {
        /// When.
        at: i64,
        /// Its job.
        job: JobId,
        /// Its run.
        run: u32,
    },
    /// The process is dead: written by the one who killed it.
    Killed {
        /// When.
        at: i64,
    },
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intent { call, job } => write!(f, "intent {call} {job}"),
            Self::Stored { call } => write!(f, "stored {call}"),
            Self::Refused { call } => write!(f, "refused {call}"),
            Self::Start { at, task, job, run } => write!(f, "start {at} {task} {job} {run}"),
            Self::End { at, job, run } => write!(f, "end {at} {job} {run}"),
            Self::Killed { at } => write!(f, "killed {at}"),
        }
    }
}

impl FromStr for Line {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let line = match words.next() {
            Some("intent") => Self::Intent { call: word(&mut words)?, job: word(&mut words)? },
            Some("stored") => Self::Stored { call: word(&mut words)? },
            Some("refused") => Self::Refused { call: word(&mut words)? },
            Some("start") => Self::Start {
                at: word(&mut words)?,
                task: word(&mut words)?,
                job: word(&mut words)?,
                run: word(&mut words)?,
            },
            Some("end") => {
                Self::End { at: word(&mut words)?, job: word(&mut words)?, run: word(&mut words)? }
            }
            Some("killed") => Self::Killed { at: word(&mut words)? },
            _ => return Err(format!("no line of a ledger: {text:?}")),
        };
        Ok(line)
    }
}

fn word<T: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Result<T, String> {
    let word = words.next().ok_or("the line is too short")?;
    word.parse().map_err(|_| format!("{word:?} cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_as_it_was_written() {
        let (call, job) = (JobId::new(), JobId::new());
        for line in [
            Line::Intent { call, job },
            Line::Stored { call },
            Line::Refused { call },
            Line::Start { at: 7, task: "capped".into(), job, run: 2 },
            Line::End { at: 9, job, run: 2 },
            Line::Killed { at: 11 },
        ] {
            assert_eq!(line.to_string().parse(), Ok(line));
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for text in ["", "begin 1", "start 1 capped", "killed soon"] {
            assert!(text.parse::<Line>().is_err(), "{text:?}");
        }
    }
}
