//! Writes one process's lines.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flexiq::{Context, JobId};

use super::Line;

/// Appends lines to one file, each in one write: what was written survives the process. Shared by its clones.
#[derive(Clone, Debug)]
pub struct Pen {
    file: Arc<File>,
}

impl Pen {
    /// Opens a file for appending, creating it if it is not there.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Arc::new(file) })
    }

    /// Appends a line.
    ///
    /// # Panics
    ///
    /// If it cannot be written: a test without its ledger proves nothing.
    pub fn write(&self, line: &Line) {
        (&*self.file).write_all(format!("{line}\n").as_bytes()).expect("the ledger can be written");
    }

    /// Appends the intents of one call; answers the call.
    pub fn intend(&self, jobs: &[JobId]) -> JobId {
        let call = *jobs.first().expect("a call stores something");
        let lines: String = jobs.iter().map(|&job| format!("{}\n", Line::Intent { call, job })).collect();
        (&*self.file).write_all(lines.as_bytes()).expect("the ledger can be written");
        call
    }

    /// Says that the body of this run has begun.
    pub fn start(&self, context: &Context) {
        let task = context.task().to_owned();
        self.write(&Line::Start { at: now(), task, job: context.job_id(), run: context.run() });
    }

    /// Says that the body of this run is about to return.
    pub fn end(&self, context: &Context) {
        self.write(&Line::End { at: now(), job: context.job_id(), run: context.run() });
    }

    /// Says that the process of this file is dead.
    pub fn killed(&self) {
        self.write(&Line::Killed { at: now() });
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    i64::try_from(now.as_millis()).expect("the clock is before the year 292,000,000")
}
