//! What a command answers: for people and for programs.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use serde_json::Value;

use super::failure::tell;

/// What a command answers.
#[derive(Debug)]
pub(super) struct Report {
    /// For people.
    text: String,
    /// For programs.
    json: Value,
    /// What could not be done, beside the rest.
    failures: Vec<String>,
}

impl Report {
    pub(super) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json, failures: Vec::new() }
    }

    /// Adds what could not be done.
    pub(super) fn with_failures(mut self, failures: Vec<String>) -> Self {
        self.failures = failures;
        self
    }

    pub(super) fn print(self, as_json: bool) -> ExitCode {
        let text = if as_json { format!("{:#}", self.json) } else { self.text };
        let mut stdout = std::io::stdout().lock();
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let written = write!(stdout, "{text}{end}").and_then(|()| stdout.flush());
        for failure in &self.failures {
            tell(&format!("error: {failure}\n"));
        }
        match written {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => {
                tell(&format!("error: the output cannot be written: {error}\n"));
                return ExitCode::from(1);
            }
            Ok(()) => {}
        }
        if self.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
    }
}
