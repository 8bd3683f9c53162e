//! top: the busiest tasks and workers, drawn again and again until ctrl-c. Where nobody watches it is drawn once.

use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use super::failure::Failure;
use super::report::Report;
use super::{stats, workers};
use crate::error::Result;
use crate::queue::{Queue, Stats, TaskStats, WorkerStats};

/// Tasks, and workers, that are drawn at most.
const MOST_DRAWN: usize = 20;
/// To the first place of the terminal, and what was there is gone.
const CLEAR: &str = "\x1b[H\x1b[2J";

pub(super) async fn top(queue: &Queue, every: Duration, as_json: bool) -> Result<Report, Failure> {
    if as_json || !std::io::stdout().is_terminal() {
        let stats = queue.stats().await?;
        return Ok(Report::new(picture(&stats), stats::json(&stats)));
    }
    let stopped = tokio::signal::ctrl_c();
    tokio::pin!(stopped);
    loop {
        let drawn = draw(&told(queue.stats().await, every));
        match drawn {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(error) => return Err(Failure::Failed(format!("the output cannot be written: {error}"))),
            Ok(()) => {}
        }
        tokio::select! {
            _ = &mut stopped => break,
            () = tokio::time::sleep(every) => {}
        }
    }
    Ok(Report::new("", serde_json::Value::Null))
}

/// A picture, or why there is none now: the store may come back.
fn told(stats: Result<Stats>, every: Duration) -> String {
    let last = format!("\nEvery {} s; ctrl-c ends it.\n", every.as_secs_f64());
    match stats {
        Ok(stats) => picture(&stats) + &last,
        Err(error) => format!("{error}\n{last}"),
    }
}

fn draw(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "{CLEAR}{text}")?;
    stdout.flush()
}

fn picture(found: &Stats) -> String {
    let mut tasks: Vec<&TaskStats> = found.tasks.iter().collect();
    tasks.sort_by_key(|task| {
        std::cmp::Reverse((task.counts.running, task.counts.ready, task.counts.scheduled))
    });
    let mut busiest: Vec<&WorkerStats> = found.workers.iter().collect();
    busiest.sort_by_key(|worker| std::cmp::Reverse(worker.async_slots.busy + worker.plain_slots.busy));
    let mut text = stats::table(&tasks[..tasks.len().min(MOST_DRAWN)], found.at).or("no task is known yet");
    text += &more(tasks.len());
    text.push('\n');
    if !busiest.is_empty() {
        text += &workers::table(&busiest[..busiest.len().min(MOST_DRAWN)], found.at).or("");
        text += &more(busiest.len());
        text.push('\n');
    }
    text + &stats::last_line(found)
}

fn more(rows: usize) -> String {
    match rows.saturating_sub(MOST_DRAWN) {
        0 => String::new(),
        more => format!("and {more} more\n"),
    }
}
