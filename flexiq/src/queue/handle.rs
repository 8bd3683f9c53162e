//! The handle of one stored job: its status, its value, cancelling it.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::{Answer, Queue};
use crate::error::{Error, Result};
use crate::job::{Job, JobId, Story, Value};
use crate::name::Name;
use crate::store::{Cancelled, Enqueued, JobKey, Stored};

/// The handle of one stored job, whose task returns a `T`. Cheap to clone.
///
/// Dropping it changes nothing: the job goes on.
pub struct JobHandle<T> {
    queue: Queue,
    key: JobKey,
    is_duplicate: bool,
    is_replaced: bool,
    returns: PhantomData<fn() -> T>,
}

impl<T> JobHandle<T> {
    pub(super) fn new(queue: Queue, name: Name, stored: Enqueued) -> Self {
        let key = JobKey { queue: name, id: stored.id };
        let Enqueued { is_duplicate, is_replaced, .. } = stored;
        Self { queue, key, is_duplicate, is_replaced, returns: PhantomData }
    }

    pub(super) fn of(queue: Queue, job: &Job) -> Result<Self> {
        let key = JobKey { queue: Name::new("queue", &job.queue)?, id: job.id };
        Ok(Self { queue, key, is_duplicate: false, is_replaced: false, returns: PhantomData })
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The job's id.
    pub fn id(&self) -> JobId {
        self.key.id
    }

    /// The queue that it is stored in.
    pub fn queue_name(&self) -> &str {
        &self.key.queue
    }

    /// Whether the job was there before: the call stored nothing and this is the handle of the one that exists.
    pub fn is_duplicate(&self) -> bool {
        self.is_duplicate
    }

    /// Whether that job has the arguments of the call now, by [`replace`](crate::Enqueue::replace) or
    /// [`debounce`](crate::Enqueue::debounce).
    pub fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// The same job, seen as one whose task returns a `U`.
    pub fn typed<U>(self) -> JobHandle<U> {
        let Self { queue, key, is_duplicate, is_replaced, .. } = self;
        JobHandle { queue, key, is_duplicate, is_replaced, returns: PhantomData }
    }

    /// The job as the store shows it now.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if its retention is over.
    pub fn status(&self) -> Answer<Job> {
        self.queue.status(self.key.id)
    }

    /// What is kept of how the job went, as [`Queue::story`] tells it.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if its retention is over.
    pub fn story(&self) -> Answer<Story> {
        self.queue.story(self.key.id)
    }

    /// Cancels the job, as [`Queue::cancel`] does.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if its retention is over.
    pub fn cancel(&self) -> Answer<Cancelled> {
        self.queue.cancel(self.key.id)
    }
}

impl<T: DeserializeOwned + 'static> JobHandle<T> {
    /// Waits until the job has ended, and gives its value.
    ///
    /// # Errors
    ///
    /// [`Error::JobFailed`] with its story if it ended otherwise than by success, [`Error::ResultTooLarge`] if its value
    /// was not kept, [`Error::Decode`] if the value is not a `T`, [`Error::UnknownJob`] if its retention is over.
    pub fn result(&self) -> Answer<T> {
        let (store, key) = (self.queue.store().clone(), self.key.clone());
        Answer::new(async move {
            let id = key.id;
            match store.ended(key).await? {
                None => Err(Error::UnknownJob(id)),
                Some(Stored::Failure(failure)) => Err(Error::JobFailed(Box::new(failure))),
                Some(Stored::Value(value)) => decode(id, &value),
            }
        })
    }

    /// Like [`result`](Self::result), and gives up after `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::NotEnded`] when the time is over; the job goes on.
    pub fn result_within(&self, limit: Duration) -> Answer<T> {
        let (id, clock, result) = (self.key.id, self.queue.store().clock().clone(), self.result());
        Answer::new(async move {
            tokio::select! {
                biased;
                result = result => result,
                () = clock.sleep(limit) => Err(Error::NotEnded(id)),
            }
        })
    }
}

fn decode<T: DeserializeOwned>(id: JobId, value: &Value) -> Result<T> {
    let json = match value {
        Value::Unit => b"null".as_slice(),
        Value::Json(json) => json,
        Value::TooLarge { size, limit } => {
            return Err(Error::ResultTooLarge { job: id, size: *size, limit: *limit });
        }
    };
    serde_json::from_slice(json)
        .map_err(|error| Error::Decode { what: format!("the value of job {id}"), reason: error.to_string() })
}

impl<T> Clone for JobHandle<T> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            key: self.key.clone(),
            is_duplicate: self.is_duplicate,
            is_replaced: self.is_replaced,
            returns: PhantomData,
        }
    }
}

impl<T> fmt::Debug for JobHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle")
            .field("id", &self.key.id)
            .field("queue", &self.key.queue)
            .field("is_duplicate", &self.is_duplicate)
            .finish()
    }
}
