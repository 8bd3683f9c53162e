//! workers: who is alive, and what each does.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::columns::{Columns, Head};
use super::failure::Failure;
use super::moments::{millis, seen_from};
use super::report::Report;
use crate::queue::{Queue, RunStats, SlotStats, WorkerStats};
use crate::store::Ended;

pub(super) async fn list(queue: &Queue) -> Result<Report, Failure> {
    let stats = queue.stats().await?;
    let workers: Vec<&WorkerStats> = stats.workers.iter().collect();
    let text = table(&workers, stats.at).or("no worker is alive");
    let workers: Vec<Value> = stats.workers.iter().map(json).collect();
    Ok(Report::new(text, json!({ "workers": workers })))
}

/// The workers, a row each, as they last said.
pub(super) fn table(workers: &[&WorkerStats], now: SystemTime) -> Columns {
    let mut columns = Columns::new(&[
        Head::Left("WORKER"),
        Head::Right("ASYNC"),
        Head::Right("PLAIN"),
        Head::Right("SUCCEEDED"),
        Head::Right("FAILED"),
        Head::Right("DEFERRED"),
        Head::Left("QUEUES"),
        Head::Right("TASKS"),
        Head::Left("ALIVE"),
        Head::Left("HEARD OF"),
    ]);
    for worker in workers {
        let ended =
            |of: fn(&Ended) -> u64| worker.runs.iter().map(|runs| of(&runs.ended)).sum::<u64>().to_string();
        columns.row([
            worker.label.clone(),
            slots(worker.async_slots),
            slots(worker.plain_slots),
            ended(|ended| ended.succeeded),
            ended(|ended| ended.failed + ended.undecodable),
            ended(|ended| ended.deferred),
            worker.queues.join(", "),
            worker.tasks.len().to_string(),
            format!("since {}", seen_from(now, worker.since)),
            seen_from(now, worker.beat_at),
        ]);
    }
    columns
}

fn slots(SlotStats { total, busy }: SlotStats) -> String {
    format!("{busy} of {total}")
}

/// A worker for programs.
pub(super) fn json(worker: &WorkerStats) -> Value {
    let slots = |SlotStats { total, busy }: SlotStats| json!({ "total": total, "busy": busy });
    json!({
        "worker": worker.worker.to_string(),
        "label": worker.label,
        "since_ms": millis(worker.since),
        "beat_at_ms": millis(worker.beat_at),
        "queues": worker.queues,
        "tasks": worker.tasks,
        "async_slots": slots(worker.async_slots),
        "plain_slots": slots(worker.plain_slots),
        "runs": worker.runs.iter().map(runs).collect::<Vec<_>>(),
        "left_out": worker.left_out,
    })
}

fn runs(runs: &RunStats) -> Value {
    let Ended { succeeded, failed, deferred, undecodable, released, cancelled, lost } = runs.ended;
    json!({
        "queue": runs.queue,
        "task": runs.task,
        "running": runs.running,
        "oldest_run_at_ms": runs.oldest_run_at.map(millis),
        "ended": {
            "succeeded": succeeded,
            "failed": failed,
            "deferred": deferred,
            "undecodable": undecodable,
            "released": released,
            "cancelled": cancelled,
            "lost": lost,
        },
        "started": runs.started,
        "waited_ms": u64::try_from(runs.waited.as_millis()).unwrap_or(u64::MAX),
        "ran_ms": u64::try_from(runs.ran.as_millis()).unwrap_or(u64::MAX),
    })
}
