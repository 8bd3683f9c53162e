//! stats: what waits, runs and died of each task, and what keeps it.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::columns::{Columns, Head};
use super::failure::Failure;
use super::json;
use super::moments::{millis, seen_from};
use super::report::Report;
use super::{queues, workers};
use crate::queue::{Queue, Stats, TaskStats};
use crate::store::Cause;

pub(super) async fn stats(queue: &Queue) -> Result<Report, Failure> {
    let stats = queue.stats().await?;
    let tasks: Vec<&TaskStats> = stats.tasks.iter().collect();
    let mut text = table(&tasks, stats.at).or("no task is known yet");
    text.push('\n');
    text += &last_line(&stats);
    Ok(Report::new(text, json(&stats)))
}

/// The tasks, a row each.
pub(super) fn table(tasks: &[&TaskStats], now: SystemTime) -> Columns {
    let mut columns = Columns::new(&[
        Head::Left("QUEUE"),
        Head::Left("TASK"),
        Head::Right("SCHEDULED"),
        Head::Right("READY"),
        Head::Right("STARTABLE"),
        Head::Right("RUNNING"),
        Head::Right("DEAD"),
        Head::Left("READY SINCE"),
        Head::Left("KEPT BY"),
    ]);
    for task in tasks {
        columns.row([
            task.queue.clone(),
            task.task.clone(),
            task.counts.scheduled.to_string(),
            task.counts.ready.to_string(),
            task.startable.to_string(),
            task.counts.running.to_string(),
            task.counts.dead.to_string(),
            task.oldest_ready_at.map_or_else(|| "-".into(), |at| seen_from(now, at)),
            kept_by(&task.shut_by, task.is_stranded, now),
        ]);
    }
    columns
}

/// What stands below the tasks.
pub(super) fn last_line(stats: &Stats) -> String {
    let mut line = match stats.workers.len() {
        0 => "No worker is alive.".to_owned(),
        1 => "1 worker is alive.".to_owned(),
        workers => format!("{workers} workers are alive."),
    };
    let paused: Vec<&str> =
        stats.queues.iter().filter(|queue| queue.is_paused).map(|queue| &*queue.queue).collect();
    if !paused.is_empty() {
        line += &format!(" Paused: queue {}.", paused.join(", "));
    }
    if stats.drift > 0 {
        line += &format!(" {} queues or tasks do not go by the limits that are declared.", stats.drift);
    }
    line + "\n"
}

/// By what a gate is shut, in a few words: `flexiq why` says more of each job.
pub(super) fn kept_by(shut_by: &[Cause], is_stranded: bool, now: SystemTime) -> String {
    let mut words: Vec<String> = shut_by.iter().map(|cause| word(cause, now)).collect();
    if is_stranded {
        words.push("no worker".into());
    }
    if words.is_empty() { "-".into() } else { words.join(", ") }
}

fn word(cause: &Cause, now: SystemTime) -> String {
    match cause {
        Cause::NotDue { due_at, .. } => format!("due {}", seen_from(now, *due_at)),
        Cause::Paused { .. } => "paused".into(),
        Cause::NoWorker { .. } => "no worker".into(),
        Cause::Held { until, .. } => format!("held, opens {}", seen_from(now, *until)),
        Cause::Full { max_concurrent, running, .. } => format!("full ({running} of {max_concurrent})"),
        Cause::Spent { opens_at, .. } => format!("rate spent, opens {}", seen_from(now, *opens_at)),
        Cause::Behind { jobs, .. } => format!("{jobs} before it"),
    }
}

/// All that is told, for programs.
pub(super) fn json(stats: &Stats) -> Value {
    json!({
        "at_ms": millis(stats.at),
        "queues": stats.queues.iter().map(|queue| queues::json(queue, stats)).collect::<Vec<_>>(),
        "tasks": stats.tasks.iter().map(task).collect::<Vec<_>>(),
        "workers": stats.workers.iter().map(workers::json).collect::<Vec<_>>(),
        "drift": stats.drift,
    })
}

/// A task in a queue, for programs.
pub(super) fn task(task: &TaskStats) -> Value {
    json!({
        "queue": task.queue,
        "task": task.task,
        "jobs": json::counts(&task.counts),
        "startable": task.startable,
        "oldest_ready_at_ms": task.oldest_ready_at.map(millis),
        "oldest_run_at_ms": task.oldest_run_at.map(millis),
        "is_stranded": task.is_stranded,
        "shut_by": task.shut_by.iter().map(json::cause).collect::<Vec<_>>(),
    })
}
