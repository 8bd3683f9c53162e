//! queues: what each holds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::columns::{Columns, Head};
use super::failure::Failure;
use super::json;
use super::report::Report;
use crate::queue::Queue;
use crate::store::{Scope, TaskCounts};

pub(super) async fn list(queue: &Queue) -> Result<Report, Failure> {
    let mut queues: BTreeMap<String, TaskCounts> =
        queue.queues().await?.into_iter().map(|name| (name, TaskCounts::default())).collect();
    for counts in queue.counts().await? {
        add(queues.entry(counts.queue.clone()).or_default(), &counts);
    }
    let is_paused: BTreeSet<String> = queue
        .limits()
        .await?
        .into_iter()
        .filter(|standing| standing.is_paused)
        .filter_map(|standing| match standing.scope {
            Scope::Queue(queue) => Some(queue.to_string()),
            _ => None,
        })
        .collect();
    let mut columns = Columns::new(&[
        Head::Left("QUEUE"),
        Head::Right("SCHEDULED"),
        Head::Right("READY"),
        Head::Right("RUNNING"),
        Head::Right("SUCCEEDED"),
        Head::Right("DEAD"),
        Head::Right("CANCELLED"),
        Head::Right("EXPIRED"),
        Head::Left("PAUSED"),
    ]);
    let mut list: Vec<Value> = Vec::new();
    for (name, counts) in queues {
        let is_paused = is_paused.contains(&name);
        columns.row([
            name.clone(),
            counts.scheduled.to_string(),
            counts.ready.to_string(),
            counts.running.to_string(),
            counts.succeeded.to_string(),
            counts.dead.to_string(),
            counts.cancelled.to_string(),
            counts.expired.to_string(),
            if is_paused { "paused".into() } else { "-".into() },
        ]);
        list.push(json!({ "queue": name, "is_paused": is_paused, "jobs": json::counts(&counts) }));
    }
    Ok(Report::new(columns.or("no queue is known yet"), json!({ "queues": list })))
}

fn add(sum: &mut TaskCounts, counts: &TaskCounts) {
    sum.scheduled += counts.scheduled;
    sum.ready += counts.ready;
    sum.running += counts.running;
    sum.succeeded += counts.succeeded;
    sum.dead += counts.dead;
    sum.cancelled += counts.cancelled;
    sum.expired += counts.expired;
}
