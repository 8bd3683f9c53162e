//! A sample of a store: how much waits of each task, and for how long. Two of them, minutes apart, tell what grows.
//!
//! Workers write them, now one and now another. Whoever has written one says once in the log what is wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::warning::Warning;
use super::{Answer, Queue};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::store::{Cause, Snapshot, Store, StoredSample, TaskFacts};

/// The time between two samples, at least.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_secs(5 * 60);

/// A sample tells at most so many tasks.
const MOST_TASKS: usize = 5_000;

/// What waited at one moment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Timestamp,
    tasks: BTreeMap<(String, String), SampledTask>,
}

/// What waited of one task in one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SampledTask {
    pub(super) queue: String,
    pub(super) task: String,
    pub(super) pending: u64,
    /// Since when its oldest ready job was ready, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) oldest_ready_at: Option<i64>,
    /// Whether a cap or a rate of it or of its queue was used up.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) is_limited: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Sample {
    /// Reads what was stored, perhaps by another version. What cannot be read says nothing.
    pub(super) fn read(stored: &StoredSample) -> Self {
        let tasks: Vec<SampledTask> = serde_json::from_str(&stored.text).unwrap_or_default();
        let key = |task: &SampledTask| (task.queue.clone(), task.task.clone());
        Self { at: stored.at, tasks: tasks.into_iter().map(|task| (key(&task), task)).collect() }
    }

    /// What waited of a task.
    pub(super) fn task(&self, queue: &str, task: &str) -> Option<&SampledTask> {
        self.tasks.get(&(queue.to_owned(), task.to_owned()))
    }

    /// The sample of what was found.
    fn text_of(found: &Snapshot) -> String {
        let waiting = found.tasks.iter().filter(|task| task.counts.pending() > 0);
        let tasks: Vec<SampledTask> = waiting.map(|task| sampled(task, found)).take(MOST_TASKS).collect();
        serde_json::to_string(&tasks).expect("a sample has nothing that JSON has not")
    }
}

fn sampled(task: &TaskFacts, found: &Snapshot) -> SampledTask {
    SampledTask {
        queue: task.counts.queue.clone(),
        task: task.counts.task.clone(),
        pending: task.counts.pending(),
        oldest_ready_at: task.oldest_ready_at.map(Timestamp::as_millis),
        is_limited: !limits_before(task, found).is_empty(),
    }
}

/// The caps that are full and the rates that are spent before the jobs of a task.
pub(super) fn limits_before(task: &TaskFacts, found: &Snapshot) -> Vec<Cause> {
    let queue = found.queues.iter().find(|queue| *queue.queue == *task.counts.queue);
    let of_queue = queue.map(|queue| queue.shut_by.as_slice()).unwrap_or_default();
    let is_limit = |cause: &&Cause| matches!(cause, Cause::Full { .. } | Cause::Spent { .. });
    of_queue.iter().chain(&task.shut_by).filter(is_limit).cloned().collect()
}

/// Samples the store, unless somebody has done so within [`SAMPLE_EVERY`]; who has is told what is wrong.
pub(crate) async fn sample(store: &dyn Store) -> Result<Option<Vec<Warning>>> {
    let found = store.stats().await?;
    let newest = found.samples.last().map(|sample| sample.at);
    // A clock that was stepped back must not end the samples.
    if newest.is_some_and(|newest| newest <= found.at && found.at.since(newest) < SAMPLE_EVERY) {
        return Ok(None);
    }
    if !store.keep_sample(newest, Sample::text_of(&found)).await? {
        return Ok(None);
    }
    Ok(Some(Warning::all(&store.stats().await?)))
}

impl Queue {
    /// Samples the store as a worker does, for this project's own tests.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn sample(&self) -> Answer<Option<Vec<Warning>>> {
        let store = self.store().clone();
        Answer::new(async move { sample(&*store).await })
    }
}
