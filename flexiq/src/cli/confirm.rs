//! Asking before much is done, and telling how far it is.

use std::io::{BufRead, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

use super::failure::{Failure, tell};

/// Asks whether to go on.
pub(super) fn ask(what: &str, is_agreed: bool) -> Result<(), Failure> {
    if is_agreed {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let text = format!("{what}: write --yes to go on, because nobody can be asked here");
        return Err(Failure::Usage(text));
    }
    tell(&format!("{what}. Go on? [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read.map(|_| answer.trim().to_lowercase()) {
        Ok(answer) if answer == "y" || answer == "yes" => Ok(()),
        _ => Err(Failure::Failed("nothing was done".into())),
    }
}

/// A bar for so many jobs, on a terminal alone.
pub(super) fn progress(jobs: u64) -> ProgressBar {
    let bar = ProgressBar::new(jobs);
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} jobs, {eta} left");
    bar.set_style(style.expect("the template is one"));
    bar
}
