//! completions: what a shell can complete.

use clap::CommandFactory;
use clap_complete::Shell;

use super::args::Cli;
use super::report::Report;

pub(super) fn write(shell: Shell) -> Report {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "flexiq", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Report::new(script.clone(), script.into())
}
