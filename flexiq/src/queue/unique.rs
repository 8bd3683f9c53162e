//! The words of the enqueue builder for jobs of which there is to be one.

use std::time::Duration;

use super::Enqueue;
use crate::task::{Key, key_text};

impl<T, Q> Enqueue<T, Q> {
    /// Stores no second job of this task with this key in its queue: while there is one, a call answers its handle, and
    /// [`is_duplicate`](super::JobHandle::is_duplicate) says so.
    ///
    /// A string is taken as it is, everything else as canonical JSON, as in `unique_by`. It stands above the key that the task
    /// makes with `unique` or `unique_by`. The key is free when the job ends (succeeded, dead, cancelled, expired), or
    /// when it starts, where the task says `unique_until = "start"`. Retries, deferrals and lost workers keep it until its end; a
    /// retry behind a start does not take it again. A duplicate is not counted for `max_pending`, and waits for no room.
    ///
    /// The store keeps a hash of it: half of a SHA-256.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> flexiq::Result<()> {
    /// use flexiq::Queue;
    ///
    /// #[flexiq::task]
    /// async fn print_report(month: String) {}
    ///
    /// let queue = Queue::open("sqlite::memory:").await?;
    /// let first = enqueue_print_report(&queue, "2026-10".into()).unique_key("2026-10").await?;
    /// let second = enqueue_print_report(&queue, "2026-10".into()).unique_key("2026-10").await?;
    /// assert!(second.is_duplicate() && second.id() == first.id());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "deduplicate")]
    #[doc(alias = "idempotency_key")]
    pub fn unique_key<K: Key + ?Sized>(mut self, key: &K) -> Self {
        self.draft.set_unique_key(|task| key_text(format!("unique key of task {task}"), key));
        self
    }

    /// Holds the unique key for `time` from when the job is stored, even if it ends sooner. It is held at least so long, and
    /// at most until `time` is over and the job has ended.
    ///
    /// Calls within that time answer the handle of the job also when its retention is over: it is unknown then. To delete the
    /// job by hand frees the key at once.
    pub fn unique_for(mut self, time: Duration) -> Self {
        self.draft.set_unique_for(time);
        self
    }

    /// Gives the job that has the unique key the arguments of this call, and its `timeout`, `max_retries` and `result_ttl`, as long
    /// as it is pending. It keeps its place, its due time and its expiry.
    ///
    /// One that runs or has ended is left as it is, and the arguments of this call are dropped: the handle's
    /// [`is_replaced`](super::JobHandle::is_replaced) says which. With `unique_until = "start"` a running job has no key, so that
    /// nothing is dropped.
    ///
    /// # Errors
    ///
    /// On awaiting it: [`Error::Invalid`](crate::Error::Invalid) if the call has no unique key, or if its arguments belong to
    /// another partition than the job.
    pub fn replace(mut self) -> Self {
        self.draft.uniqueness().replaces = true;
        self
    }

    /// Makes the job due `quiet` after the last call of its kind: each call replaces the arguments of the job that waits, as
    /// [`replace`](Self::replace) does, and postpones it.
    ///
    /// Of its kind are calls with the same unique key; without one, all calls of the task, or of the partition where it has
    /// `partition_by`. Once the job is due, calls still replace its arguments until it starts, and postpone it no more. Its
    /// start frees the key, whatever the task says, so that a call after that makes the next job. Its expiry counts from the new due
    /// time.
    ///
    /// # Errors
    ///
    /// On awaiting it: [`Error::Invalid`](crate::Error::Invalid) beside [`delay`](Self::delay), [`at`](Self::at),
    /// [`throttle`](Self::throttle) or [`unique_for`](Self::unique_for), and as of [`replace`](Self::replace).
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> flexiq::Result<()> {
    /// use std::time::Duration;
    ///
    /// use flexiq::Queue;
    ///
    /// #[flexiq::task]
    /// async fn index_draft(document: u64, text: String) {}
    ///
    /// let queue = Queue::open("sqlite::memory:").await?;
    /// let quiet = Duration::from_secs(5);
    /// enqueue_index_draft(&queue, 7, "dra".into()).unique_key(&7).debounce(quiet).await?;
    /// let last = enqueue_index_draft(&queue, 7, "draft".into()).unique_key(&7).debounce(quiet).await?;
    /// assert!(last.is_replaced()); // one job, due in five seconds, with "draft"
    /// # Ok(())
    /// # }
    /// ```
    pub fn debounce(mut self, quiet: Duration) -> Self {
        self.draft.set_debounce(quiet);
        self
    }

    /// Stores one job in `time`: a call within it answers the handle of the first, whatever has become of that job.
    ///
    /// Of its kind are calls with the same unique key; without one, all calls of the task, or of the partition where it has
    /// `partition_by`. The key is held for this time and no longer: a call after it makes another job, even if the first still
    /// waits.
    ///
    /// # Errors
    ///
    /// On awaiting it: [`Error::Invalid`](crate::Error::Invalid) beside [`replace`](Self::replace),
    /// [`debounce`](Self::debounce) or [`unique_for`](Self::unique_for).
    pub fn throttle(mut self, time: Duration) -> Self {
        self.draft.set_throttle(time);
        self
    }
}
