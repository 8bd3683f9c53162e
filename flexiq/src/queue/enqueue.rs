//! The builder that an `enqueue_*` function returns: awaited directly, or refined first.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

use super::draft::Draft;
use super::{Answer, JobHandle, Queue, waiting};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::job::{Due, JobId};
use crate::store;
use crate::task::Call;

/// A call of a task that is stored when it is awaited, or when [`blocking`](Self::blocking) is called.
///
/// `T` is what the task returns. `Q` says whether the task may be enqueued elsewhere than in its home queue.
#[must_use = "nothing is stored until it is awaited, or `.blocking()` is called"]
pub struct Enqueue<T, Q = HomeQueue> {
    handle: Queue,
    pub(super) draft: Draft,
    returns: PhantomData<fn() -> (T, Q)>,
}

/// Marks a task that lives in its home queue alone.
#[derive(Clone, Copy, Debug)]
pub enum HomeQueue {}

/// Marks a task with `any_queue`: its `enqueue_*` has [`queue`](Enqueue::queue).
#[derive(Clone, Copy, Debug)]
pub enum AnyQueue {}

impl<T, Q> Enqueue<T, Q> {
    pub(crate) fn new(queue: &Queue, call: Call) -> Self {
        Self::of_draft(queue.clone(), Draft::of_call(call))
    }

    pub(super) fn of_draft(queue: Queue, draft: Draft) -> Self {
        Self { handle: queue, draft, returns: PhantomData }
    }

    pub(super) fn into_parts(self) -> (Queue, Draft) {
        (self.handle, self.draft)
    }

    /// Delays the job by `delay` from the moment it is stored.
    ///
    /// A later call of `delay` or [`at`](Self::at) replaces an earlier one. Defaults to no delay.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.draft.set_due(Due::In(delay));
        self
    }

    /// Makes the job due at `moment`, by the store's clock. A moment that is over is now.
    ///
    /// A later call of [`delay`](Self::delay) or `at` replaces an earlier one.
    pub fn at(mut self, moment: SystemTime) -> Self {
        self.draft.set_due(Due::At(Timestamp::from(moment)));
        self
    }

    /// Sets the priority, from −100 to 100: higher first, strictly. Defaults to the task's.
    pub fn priority(mut self, priority: i8) -> Self {
        self.draft.set_priority(priority);
        self
    }

    /// Lets the job expire unless it starts within `expires` of its due time. Defaults to the task's.
    pub fn expires(mut self, expires: Duration) -> Self {
        self.draft.set_expires(expires);
        self
    }

    /// Makes a run of this job that takes longer a failure. Defaults to the task's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Forgives this job so many failures. Defaults to the task's.
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.draft.set_max_retries(max_retries);
        self
    }

    /// Keeps the job and its value this long after it succeeded. Defaults to the task's.
    pub fn result_ttl(mut self, result_ttl: Duration) -> Self {
        self.draft.set_result_ttl(result_ttl);
        self
    }

    /// Gives the job an id of the caller's. The same id again stores nothing and answers the job that is there, so that
    /// a call whose answer was lost may be sent again.
    pub fn id(mut self, id: impl Into<JobId>) -> Self {
        self.draft.set_id(id.into());
        self
    }

    /// Waits for `timeout` at most until there is room, where the queue or the partition is full. Defaults to being
    /// refused at once.
    ///
    /// Those who wait stand in line in the order of their arrival, and are told when there is room: nothing polls. Room is
    /// kept for those who stand before, also from producers that do not wait; so a large batch is not overtaken
    /// for ever, and those behind it wait until it has come in. A program that dies while it waits stands in the line for
    /// 15 s at most. Dropping the future leaves the line. In a [`batch`](Queue::batch), the longest `timeout` of its calls
    /// holds for the whole.
    ///
    /// A job that is stored already, by its [`id`](Self::id), is found first and does not wait.
    ///
    /// # Errors
    ///
    /// On awaiting it: [`Error::QueueFull`](crate::Error::QueueFull) or
    /// [`Error::PartitionFull`](crate::Error::PartitionFull) when the time is over, and nothing is stored;
    /// [`Error::StoreUnavailable`](crate::Error::StoreUnavailable) if the store was away then, with what is known;
    /// [`Error::Invalid`](crate::Error::Invalid) at once if a batch is larger than `max_pending` and would never fit. Each
    /// call of the store has its own time (`Queue::builder(url).timeout(..)`), so the answer to one that is under way when
    /// the time is over is awaited.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use flexiq::{Error, Queue};
    ///
    /// #[flexiq::task(queue = "emails")]
    /// async fn greet(name: String) {}
    ///
    /// # #[tokio::main]
    /// # async fn main() -> flexiq::Result<()> {
    /// let queue = Queue::builder("sqlite::memory:").max_pending("emails", 1).open().await?;
    /// let first = enqueue_greet(&queue, "Ada".into()).await?;
    /// let (second, _) = tokio::join!(
    ///     enqueue_greet(&queue, "Grace".into()).or_wait(Duration::from_secs(30)),
    ///     first.cancel(), // makes room
    /// );
    /// assert!(!second?.is_duplicate());
    ///
    /// let third = enqueue_greet(&queue, "Edith".into()).or_wait(Duration::from_millis(10)).await;
    /// assert!(matches!(third, Err(Error::QueueFull { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn or_wait(mut self, timeout: Duration) -> Self {
        self.draft.set_patience(timeout);
        self
    }
}

impl<T> Enqueue<T, AnyQueue> {
    /// Stores the job in this queue instead of the task's home queue.
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        self.draft.set_queue(queue.as_ref());
        self
    }
}

impl Enqueue<serde_json::Value, AnyQueue> {
    /// Says to which partition the job belongs, where [`enqueue_by_name`](Queue::enqueue_by_name) calls a task with
    /// `partition_by` that this program does not link: at most 200 bytes, as its expression would give.
    pub fn partition(mut self, partition: impl Into<String>) -> Self {
        self.draft.set_partition(partition.into());
        self
    }
}

impl<T: Send + 'static, Q> Enqueue<T, Q> {
    /// Stores the job and waits for that on this thread: for code that is not `async`.
    ///
    /// # Errors
    ///
    /// Those of awaiting it.
    pub fn blocking(self) -> Result<JobHandle<T>> {
        self.into_future().blocking()
    }
}

impl<T, Q> IntoFuture for Enqueue<T, Q> {
    type Output = Result<JobHandle<T>>;
    type IntoFuture = Answer<JobHandle<T>>;

    fn into_future(self) -> Self::IntoFuture {
        let (queue, draft) = self.into_parts();
        Answer::new(async move {
            let ready = draft.resolve(&**queue.store(), queue.shared.max_payload).await?;
            let max_pending = queue.declared_limits(&ready.queue).max_pending;
            let batch = store::Enqueue {
                queue: ready.queue.clone(),
                jobs: vec![ready.job],
                max_pending,
                producer: None,
            };
            let answers = waiting::enqueue(&queue, batch, ready.patience).await?;
            let stored = answers.first().copied().expect("a store answers each job of a batch");
            Ok(JobHandle::new(queue, ready.queue, stored))
        })
    }
}

impl<T, Q> fmt::Debug for Enqueue<T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").field("handle", &self.handle).finish_non_exhaustive()
    }
}
