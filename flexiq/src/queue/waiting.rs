//! Enqueueing that would rather wait than be refused: enqueue, wait for room, enqueue once more, until the time is over.

use std::sync::Arc;
use std::time::Duration;

use super::Queue;
use crate::error::{Effect, Error, Result};
use crate::job::JobId;
use crate::name::Name;
use crate::store::{Enqueue, Enqueued, ProducerId, Store};

/// Stores a batch; where it is refused for want of room, waits for that as long as `patience`.
pub(super) async fn enqueue(
    queue: &Queue,
    batch: Enqueue,
    patience: Option<Duration>,
) -> Result<Vec<Enqueued>> {
    let made_here: Vec<Option<JobId>> =
        batch.jobs.iter().map(|job| (!job.is_given).then_some(job.id)).collect();
    let mut answers = match patience {
        None => queue.store().enqueue(batch).await?,
        Some(patience) => Producer::of(queue, &batch).enqueue(batch, patience).await?,
    };
    // An id that was made for this very call is there because the call was sent twice: that is no duplicate.
    for (answer, made_here) in answers.iter_mut().zip(made_here) {
        answer.is_duplicate &= made_here != Some(answer.id);
    }
    queue.follow(&answers).await;
    Ok(answers)
}

/// Someone who may stand in line, and leaves it when this is dropped.
struct Producer {
    store: Arc<dyn Store>,
    queue: Name,
    id: ProducerId,
}

impl Producer {
    fn of(queue: &Queue, batch: &Enqueue) -> Self {
        Self { store: queue.store().clone(), queue: batch.queue.clone(), id: ProducerId::new() }
    }

    async fn enqueue(self, mut batch: Enqueue, patience: Duration) -> Result<Vec<Enqueued>> {
        let clock = self.store.clock();
        let end = clock.elapsed().saturating_add(patience);
        batch.producer = Some(self.id);
        let mut met = match self.store.enqueue(batch.clone()).await {
            Err(full) if is_full(&full) => full,
            answer => return answer,
        };
        loop {
            tokio::select! {
                biased;
                // Never amid an enqueue: what became of that is known when it is answered.
                () = clock.reach(end) => return Err(met),
                told = self.store.room(&self.queue, self.id) => told?,
            }
            met = match self.store.enqueue(batch.clone()).await {
                Err(full) if is_full(&full) => full,
                Err(error) if is_away(&error) => since(&met, error),
                Err(error) => return Err(since(&met, error)),
                stored => return stored,
            };
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.store.leave_line(&self.queue, self.id);
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::QueueFull { .. } | Error::PartitionFull { .. })
}

fn is_away(error: &Error) -> bool {
    matches!(error, Error::StoreUnavailable { .. })
}

/// What is known after a call that failed: that nothing was stored only if that was known before, too.
fn since(before: &Error, now: Error) -> Error {
    match (before, now) {
        (
            Error::StoreUnavailable { effect: Effect::Unknown, .. },
            Error::StoreUnavailable { store, reason, source, .. }
            | Error::StoreRefused { store, reason, source },
        ) => Error::StoreUnavailable { store, effect: Effect::Unknown, reason, source },
        (_, now) => now,
    }
}
