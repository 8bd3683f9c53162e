//! Many calls in one step: all of them are stored, or none.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::draft::Draft;
use super::{Answer, Enqueue, JobHandle, Queue, waiting};
use crate::error::{Error, Result};
use crate::store::{self, NewJob};

/// Jobs in one batch, at most.
const MAX_JOBS: usize = 10_000;
/// Bytes of payloads in one batch, at most.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Calls of any tasks of one queue, to be stored all or none.
#[must_use = "a batch is stored when `.send()` is awaited"]
pub struct Batch {
    queue: Queue,
    drafts: Vec<Draft>,
    patience: Option<Duration>,
    error: Option<Error>,
}

impl Queue {
    /// A batch to push calls of any tasks of one queue into.
    ///
    /// At most 10,000 jobs and 16 MiB; all of them are stored, or none.
    pub fn batch(&self) -> Batch {
        Batch { queue: self.clone(), drafts: Vec::new(), patience: None, error: None }
    }

    /// Stores calls of one task, all or none, and answers their handles in order.
    ///
    /// Where calls say [`or_wait`](Enqueue::or_wait), the longest time of them holds for all.
    ///
    /// # Errors
    ///
    /// Those of [`Batch::send`].
    pub fn enqueue_many<T, Q>(
        &self,
        calls: impl IntoIterator<Item = Enqueue<T, Q>>,
    ) -> Answer<Vec<JobHandle<T>>>
    where
        T: 'static,
    {
        let sent = calls.into_iter().fold(self.batch(), Batch::push).send();
        Answer::new(async move { Ok(sent.await?.into_iter().map(JobHandle::typed).collect()) })
    }
}

impl Batch {
    /// Adds a call.
    pub fn push<T, Q>(mut self, call: Enqueue<T, Q>) -> Self {
        let (queue, draft) = call.into_parts();
        if !queue.is_same_as(&self.queue) && self.error.is_none() {
            self.error = Some(Error::Invalid {
                what: "batch".into(),
                given: format!("a call made for {queue:?} in a batch of {:?}", self.queue),
                accepted: "calls made with the same `Queue` as the batch, or clones of it".into(),
            });
        }
        self.drafts.push(draft);
        self
    }

    /// Waits for `timeout` at most until there is room for all calls, where the queue or a partition is full, as
    /// [`Enqueue::or_wait`] does for one. Calls that say so themselves may make it longer.
    pub fn or_wait(mut self, timeout: Duration) -> Self {
        self.patience = self.patience.max(Some(timeout));
        self
    }

    /// Stores all calls in one step, or none of them, and answers their handles in order.
    ///
    /// # Errors
    ///
    /// [`Error::BatchTooLarge`], [`Error::BatchAcrossQueues`], and what any of the calls would be refused for. Nothing
    /// is stored then.
    pub fn send(self) -> Answer<Vec<JobHandle<Value>>> {
        Answer::new(async move {
            if let Some(error) = self.error {
                return Err(error);
            }
            let Some((batch, patience)) = gather(&self.queue, self.drafts).await? else {
                return Ok(Vec::new());
            };
            let name = batch.queue.clone();
            let stored = waiting::enqueue(&self.queue, batch, self.patience.max(patience)).await?;
            Ok(stored
                .into_iter()
                .map(|stored| JobHandle::new(self.queue.clone(), name.clone(), stored))
                .collect())
        })
    }
}

/// Resolves all drafts into one step of the store, and how long it waits for room; `None` if there are none.
async fn gather(handle: &Queue, drafts: Vec<Draft>) -> Result<Option<(store::Enqueue, Option<Duration>)>> {
    let mut name = None;
    let mut patience = None;
    let mut bytes = 0;
    let count = drafts.len();
    let mut jobs: Vec<NewJob> = Vec::with_capacity(count.min(MAX_JOBS));
    for draft in drafts {
        let ready = draft.resolve(&**handle.store(), handle.shared.max_payload).await?;
        let first = name.get_or_insert_with(|| ready.queue.clone());
        if *first != ready.queue {
            return Err(Error::BatchAcrossQueues {
                first: first.to_string(),
                second: ready.queue.to_string(),
            });
        }
        bytes += ready.job.payload.bytes.len();
        patience = patience.max(ready.patience);
        jobs.push(ready.job);
    }
    if count > MAX_JOBS || bytes > MAX_BYTES {
        return Err(Error::BatchTooLarge { jobs: count, bytes });
    }
    Ok(name.map(|queue| {
        let max_pending = handle.declared_limits(&queue).max_pending;
        (store::Enqueue { queue, jobs, max_pending, producer: None }, patience)
    }))
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("queue", &self.queue).field("jobs", &self.drafts.len()).finish()
    }
}
