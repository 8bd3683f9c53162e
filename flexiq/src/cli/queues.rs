//! queues: what each holds.

use serde_json::{Value, json};

use super::columns::{Columns, Head};
use super::failure::Failure;
use super::json;
use super::report::Report;
use super::stats::kept_by;
use crate::queue::{Queue, QueueStats, Stats};
use crate::store::TaskCounts;

pub(super) async fn list(queue: &Queue) -> Result<Report, Failure> {
    let stats = queue.stats().await?;
    let mut columns = Columns::new(&[
        Head::Left("QUEUE"),
        Head::Right("PENDING"),
        Head::Right("MAX"),
        Head::Right("STARTABLE"),
        Head::Right("RUNNING"),
        Head::Right("SUCCEEDED"),
        Head::Right("DEAD"),
        Head::Right("CANCELLED"),
        Head::Right("EXPIRED"),
        Head::Left("KEPT BY"),
    ]);
    for queue in &stats.queues {
        let counts = counts(queue, &stats);
        columns.row([
            queue.queue.clone(),
            queue.pending.to_string(),
            queue.max_pending.map_or_else(|| "-".into(), |max| max.to_string()),
            queue.startable.to_string(),
            queue.running.to_string(),
            counts.succeeded.to_string(),
            counts.dead.to_string(),
            counts.cancelled.to_string(),
            counts.expired.to_string(),
            kept_by(&queue.shut_by, false, stats.at),
        ]);
    }
    let queues: Vec<Value> = stats.queues.iter().map(|queue| json(queue, &stats)).collect();
    Ok(Report::new(columns.or("no queue is known yet"), json!({ "queues": queues })))
}

/// A queue for programs.
pub(super) fn json(queue: &QueueStats, stats: &Stats) -> Value {
    json!({
        "queue": queue.queue,
        "jobs": json::counts(&counts(queue, stats)),
        "pending": queue.pending,
        "max_pending": queue.max_pending,
        "startable": queue.startable,
        "is_paused": queue.is_paused,
        "shut_by": queue.shut_by.iter().map(json::cause).collect::<Vec<_>>(),
    })
}

/// The jobs of all its tasks.
fn counts(queue: &QueueStats, stats: &Stats) -> TaskCounts {
    let mut sum = TaskCounts { queue: queue.queue.clone(), ..TaskCounts::default() };
    for task in stats.tasks.iter().filter(|task| task.queue == queue.queue) {
        sum.scheduled += task.counts.scheduled;
        sum.ready += task.counts.ready;
        sum.running += task.counts.running;
        sum.succeeded += task.counts.succeeded;
        sum.dead += task.counts.dead;
        sum.cancelled += task.counts.cancelled;
        sum.expired += task.counts.expired;
    }
    sum
}
