//! The line of producers: one step for each queue is under way, and takes along all batches that have arrived meanwhile.
//! So many producers on one handle share round trips. Each batch is stored on its own, and each caller gets its answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Shared;
use super::enqueue::store_all;
use super::failure::{share, unavailable};
use super::room::leave;
use crate::error::{Effect, Result};
use crate::name::Name;
use crate::store::types::{Enqueue, Enqueued};

/// A step takes batches up to so many jobs, or one that is larger,
const MOST_JOBS: usize = 1_000;
/// and up to so many bytes of payloads.
const MOST_BYTES: usize = 1024 * 1024;
/// Nobody waits longer for a step of others: the next one goes beside it.
const PATIENCE: Duration = Duration::from_millis(100);

/// The batches of each queue that wait for the step under way. A queue without one is not there.
#[derive(Default)]
pub(super) struct Line(Mutex<HashMap<Name, Vec<Waiting>>>);

struct Waiting {
    batch: Enqueue,
    answer: oneshot::Sender<Result<Vec<Enqueued>>>,
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Vec<Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the line of a queue; answers whether somebody has to begin.
    fn join(&self, waiting: Waiting) -> bool {
        let mut queues = self.lock();
        let is_first = !queues.contains_key(&waiting.batch.queue);
        queues.entry(waiting.batch.queue.clone()).or_default().push(waiting);
        is_first
    }

    /// The batches of the next step; if there are none, the line is closed.
    fn next(&self, queue: &Name) -> Vec<Waiting> {
        let mut queues = self.lock();
        let Some(line) = queues.get_mut(queue) else { return Vec::new() };
        let (mut jobs, mut bytes) = (0, 0);
        let fits = |waiting: &&Waiting| {
            let before = jobs;
            jobs += waiting.batch.jobs.len();
            bytes += waiting.batch.jobs.iter().map(|job| job.payload.bytes.len()).sum::<usize>();
            before == 0 || (jobs <= MOST_JOBS && bytes <= MOST_BYTES)
        };
        let fitting = line.iter().take_while(fits).count();
        let next: Vec<Waiting> = line.drain(..fitting).collect();
        if next.is_empty() {
            queues.remove(queue);
        }
        next
    }
}

/// Stores a batch with the next step of its queue.
pub(super) async fn enqueue(store: &Arc<Shared>, batch: Enqueue) -> Result<Vec<Enqueued>> {
    let (answer, answered) = oneshot::channel();
    let queue = batch.queue.clone();
    if store.line.join(Waiting { batch, answer }) {
        // Not by the caller, who may be dropped while others wait for the step.
        store.spawn(send_all(store.clone(), queue));
    }
    answered.await.unwrap_or_else(|_| {
        Err(unavailable(store.place(), Effect::Unknown, "the store was closed before it answered", None))
    })
}

/// Sends step after step until nobody waits.
async fn send_all(store: Arc<Shared>, queue: Name) {
    loop {
        let batches = store.line.next(&queue);
        if batches.is_empty() {
            return;
        }
        let mut step = Box::pin(send(store.clone(), queue.clone(), batches));
        if tokio::time::timeout(PATIENCE, &mut step).await.is_err() {
            store.spawn(step);
        }
    }
}

async fn send(store: Arc<Shared>, queue: Name, waiting: Vec<Waiting>) {
    let (batches, callers): (Vec<_>, Vec<_>) =
        waiting.into_iter().map(|waiting| (waiting.batch, waiting.answer)).unzip();
    // A caller that was dropped wants no answer.
    match store_all(&store, &queue, &batches).await {
        Ok(answers) => {
            for ((caller, answer), batch) in callers.into_iter().zip(answers).zip(&batches) {
                let is_gone = caller.send(answer).is_err();
                if let Some(producer) = batch.producer.filter(|_| is_gone) {
                    // It left before this step put it in line.
                    leave(&store, &queue, producer);
                }
            }
        }
        Err(error) => {
            for (caller, error) in callers.into_iter().zip(share(error)) {
                let _ = caller.send(Err(error));
            }
        }
    }
}
