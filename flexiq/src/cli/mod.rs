//! The command line: a face of the store for people and scripts. It speaks to `Queue` alone.
//!
//! A command answers a [`Report`], as a table and as JSON, and never prints by itself; but for `top`, which draws again and
//! again. It never creates a store, and never shows a password or a secret.
//!
//! Exit codes: 0 if all that was asked was done, 1 if not or the store is away, 2 for wrong usage.

mod args;
mod columns;
mod completions;
mod confirm;
mod doctor;
mod enqueue;
mod failure;
mod jobs;
mod json;
mod limits;
mod metrics;
mod moments;
mod open;
mod queues;
mod report;
mod show;
mod stats;
mod sweep;
mod tasks;
mod top;
mod why;
mod workers;

use std::process::ExitCode;

use clap::Parser;

use self::args::{Cli, Command};
use self::failure::Failure;
use self::report::Report;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => return failure::refused(&refusal),
    };
    let as_json = cli.json;
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("no runtime: {error}")))
        .and_then(|runtime| runtime.block_on(run(cli)));
    match done {
        Ok(report) => report.print(as_json),
        Err(failure) => failure.print(),
    }
}

async fn run(cli: Cli) -> Result<Report, Failure> {
    let Cli { url, json: as_json, command } = cli;
    if let Command::Completions { shell } = command {
        return Ok(completions::write(shell));
    }
    let queue = open::open(url).await?;
    match command {
        Command::Stats => stats::stats(&queue).await,
        Command::Top { every } => top::top(&queue, every, as_json).await,
        Command::Workers => workers::list(&queue).await,
        Command::Doctor { fix } => doctor::doctor(&queue, fix).await,
        Command::Metrics => metrics::page(&queue).await,
        Command::Jobs(wanted) => jobs::list(&queue, wanted).await,
        Command::Dead(wanted) => jobs::dead(&queue, wanted).await,
        Command::Show(wanted) => show::show(&queue, wanted).await,
        Command::Why(asked) => why::why(&queue, asked).await,
        Command::Tasks => tasks::list(&queue).await,
        Command::Queues => queues::list(&queue).await,
        Command::Limits { change: None } => limits::list(&queue).await,
        Command::Limits { change: Some(change) } => limits::change(&queue, change).await,
        Command::Pause(target) => limits::pause(&queue, target).await,
        Command::Resume(target) => limits::resume(&queue, target).await,
        Command::Enqueue(call) => enqueue::enqueue(&queue, call).await,
        Command::Cancel(which) => sweep::cancel(&queue, which).await,
        Command::Retry(which) => sweep::retry(&queue, which).await,
        Command::Delete(which) => sweep::delete(&queue, which).await,
        Command::Completions { shell } => Ok(completions::write(shell)),
    }
}
