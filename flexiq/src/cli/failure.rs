//! Why a command did not do what was asked, and the code with which the process then ends.

use std::io::Write;
use std::process::ExitCode;

use crate::error::Error;
use crate::queue::masked;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was not done, or the store is away.
    Failed(String),
    /// It cannot be done as it was written.
    Usage(String),
}

impl Failure {
    pub(super) fn print(self) -> ExitCode {
        let (text, code) = match self {
            Self::Failed(text) => (text, 1),
            Self::Usage(text) => (format!("{text}\n\nFor more information, try '--help'."), 2),
        };
        tell(&format!("error: {text}\n"));
        ExitCode::from(code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidUrl { .. } => Self::Usage(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Prints what clap says to the words of the command line: help, the version, or what is wrong with them.
pub(super) fn refused(refusal: &clap::Error) -> ExitCode {
    let mut text = refusal.to_string();
    // An URL in the wrong place is named as it was typed.
    for word in std::env::args().filter(|word| word.contains("://")) {
        let url = word.split_once('=').filter(|(key, _)| !key.contains("://")).map_or(&*word, |(_, url)| url);
        text = text.replace(url, &masked(url));
    }
    if refusal.use_stderr() {
        tell(&text);
    } else {
        // A pipe that is closed wants no more.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(2))
}

/// Says something to the person at the terminal; nobody may be there.
pub(super) fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
