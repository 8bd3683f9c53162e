//! The user's handle on a store: open it, enqueue, look at jobs, start workers.
//!
//! Everything here checks what it is given and speaks to the `Store` trait; nothing knows which store it is.

mod answer;
mod arguments;
mod batch;
mod builder;
mod by_name;
mod cursor;
mod declared;
mod doctor;
mod draft;
mod enqueue;
mod explain;
mod explain_task;
mod handle;
mod inline;
mod knobs;
mod limits;
mod list;
mod new_schedule;
mod prometheus;
mod sample;
mod schedules;
mod sentence;
mod stats;
mod task_words;
mod unique;
mod uniqueness;
mod waiting;
mod warning;
mod warning_words;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use answer::Answer;
pub(crate) use answer::real_pause;
pub use batch::Batch;
pub use builder::QueueBuilder;
#[cfg(feature = "cli")]
pub(crate) use builder::masked;
pub use cursor::Cursor;
pub use doctor::Checkup;
pub use enqueue::{AnyQueue, Enqueue, HomeQueue};
pub use explain_task::{Declarer, KnobSetting, KnobValue, TaskExplanation, TaskInQueue};
pub use handle::JobHandle;
pub(crate) use inline::Follow;
pub use list::{JobPage, Jobs};
pub use new_schedule::NewSchedule;
pub(crate) use sample::{SAMPLE_EVERY, sample};
pub use schedules::ScheduleStatus;
pub use stats::{QueueStats, RunStats, SlotStats, Stats, TaskStats, WorkerStats};
pub use warning::Warning;

use crate::error::Error;
use crate::job::{Job, JobId, Story};
use crate::name::Name;
use crate::store::{Cancelled, Limits, Retried, Store, TaskCounts};
use crate::task::Context;
use crate::worker::WorkerBuilder;

/// The handle on a whole store: enqueues jobs, shows them, starts workers. Cheap to clone.
///
/// ```
/// # async fn example() -> flexiq::Result<()> {
/// let queue = flexiq::Queue::open("sqlite::memory:").await?;
/// assert!(queue.counts().await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

#[derive(Clone)]
struct Shared {
    store: Arc<dyn Store>,
    timeout: Duration,
    max_payload: usize,
    max_result: usize,
    /// What this handle declares for queues.
    limits: BTreeMap<Name, Limits>,
    /// What follows each enqueue, where a test runs its jobs at once.
    follow: Option<Arc<dyn Follow>>,
}

impl Queue {
    /// Opens a store by its URL, creating it if it is not there: `sqlite://jobs.db` (relative),
    /// `sqlite:///var/jobs.db`, `sqlite::memory:`; `redis://user:password@host:6379/0`, `unix:///run/redis.sock`, with the
    /// feature `tls` also `rediss://host`, all with `?prefix=shop` for stores that share a server.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidUrl`] for anything else, and what the store says if it cannot be opened.
    pub fn open(url: impl Into<String>) -> Answer<Self> {
        Self::builder(url).open()
    }

    /// Opens the store that the environment names in `FLEXIQ_URL`, or else `sqlite://flexiq.db`.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn from_env() -> Answer<Self> {
        Self::open(std::env::var("FLEXIQ_URL").unwrap_or_else(|_| "sqlite://flexiq.db".into()))
    }

    /// A store to be opened with settings of its own.
    pub fn builder(url: impl Into<String>) -> QueueBuilder {
        QueueBuilder::new(url.into())
    }

    /// A worker for the tasks that are linked into this program, to be refined and started.
    pub fn worker(&self) -> WorkerBuilder {
        WorkerBuilder::new(self.clone())
    }

    /// The handle of a job whose id is known, whose value is a `T`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if there is none of this id.
    pub fn job<T>(&self, id: impl Into<JobId>) -> Answer<JobHandle<T>> {
        let (queue, id) = (self.clone(), id.into());
        Answer::new(async move {
            let job = queue.store().job(id).await?.ok_or(Error::UnknownJob(id))?;
            JobHandle::of(queue, &job)
        })
    }

    /// A job as the store shows it now.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if there is none of this id.
    pub fn status(&self, id: impl Into<JobId>) -> Answer<Job> {
        let (store, id) = (self.shared.store.clone(), id.into());
        Answer::new(async move { store.job(id).await?.ok_or(Error::UnknownJob(id)) })
    }

    /// What is kept of how a job went: the lines that its runs have [logged](Context::log), and how they failed. Both are
    /// bounded; [`Story`] says how.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if there is none of this id.
    pub fn story(&self, id: impl Into<JobId>) -> Answer<Story> {
        let (store, id) = (self.shared.store.clone(), id.into());
        Answer::new(async move { store.story(id).await?.ok_or(Error::UnknownJob(id)) })
    }

    /// Cancels a job: a pending one ends at once; a running one is told to stop, and an `async` one is dropped a second
    /// later.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownJob`] if there is none of this id.
    pub fn cancel(&self, id: impl Into<JobId>) -> Answer<Cancelled> {
        let (store, id) = (self.shared.store.clone(), id.into());
        Answer::new(async move { store.cancel(id).await?.ok_or(Error::UnknownJob(id)) })
    }

    /// Makes a dead, cancelled or expired job ready again, with all its budgets fresh. Answers whether it was one.
    ///
    /// It takes its unique key again, if it had one that its end or its start frees.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTaken`] if another job has that key meanwhile.
    pub fn retry(&self, id: impl Into<JobId>) -> Answer<bool> {
        let (store, id) = (self.shared.store.clone(), id.into());
        Answer::new(async move {
            match store.retry(id).await? {
                Retried::Done => Ok(true),
                Retried::Untouched => Ok(false),
                Retried::KeyTaken(owner) => Err(Error::KeyTaken { job: id, owner }),
            }
        })
    }

    /// Deletes a job that has ended. Answers whether it had.
    pub fn delete(&self, id: impl Into<JobId>) -> Answer<bool> {
        let (store, id) = (self.shared.store.clone(), id.into());
        Answer::new(async move { store.delete(id).await })
    }

    /// How many jobs are in which state, by queue and task.
    pub fn counts(&self) -> Answer<Vec<TaskCounts>> {
        let store = self.shared.store.clone();
        Answer::new(async move { Ok(store.counts().await?.tasks) })
    }

    /// The queues that are known: served by a worker or enqueued to at some time. Sorted.
    pub fn queues(&self) -> Answer<Vec<String>> {
        let store = self.shared.store.clone();
        Answer::new(async move { Ok(store.queues().await?.iter().map(Name::to_string).collect()) })
    }

    /// A handle on a store that is already open, for this project's own tests.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self::of_store(store)
    }

    /// The store below, for this project's own tests.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    pub fn below(&self) -> Arc<dyn Store> {
        self.shared.store.clone()
    }

    /// A handle on a store that is already open, with the defaults.
    pub(crate) fn of_store(store: Arc<dyn Store>) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                timeout: Duration::from_secs(5),
                max_payload: 1024 * 1024,
                max_result: 1024 * 1024,
                limits: BTreeMap::new(),
                follow: None,
            }),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// How long a call waits for the store.
    pub(crate) fn timeout(&self) -> Duration {
        self.shared.timeout
    }

    pub(crate) fn max_result(&self) -> usize {
        self.shared.max_result
    }

    /// What this handle declares for a queue.
    pub(crate) fn declared_limits(&self, queue: &Name) -> Limits {
        self.shared.limits.get(queue).cloned().unwrap_or_default()
    }

    /// Whether both are handles on the same opened store.
    fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.shared.store.place()).finish()
    }
}

impl Context {
    /// The queue that this job came from, to enqueue more on.
    ///
    /// # Panics
    ///
    /// If the context was made by [`Context::for_test`] and given no queue [`with_queue`](Self::with_queue).
    pub fn queue(&self) -> &Queue {
        self.queue
            .as_deref()
            .and_then(|queue| queue.downcast_ref())
            .expect("Context::for_test() has no queue: give it one with .with_queue(&queue)")
    }

    /// Gives a context for tests a queue to enqueue on.
    #[must_use]
    pub fn with_queue(mut self, queue: &Queue) -> Self {
        self.queue = Some(Arc::new(queue.clone()));
        self
    }
}
