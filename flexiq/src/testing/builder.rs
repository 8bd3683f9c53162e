//! How a queue of a test is set and opened.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex;

use super::TestQueue;
use super::driver::Driver;
use super::inline::Inline;
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::store::sqlite::{Location, SqliteOptions, SqliteStore};
use crate::task::{Registry, States, Task, TaskDefinition};

/// How long a drain waits for bodies alone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A queue of a test, to be set and awaited: [`TestQueue::builder`].
#[must_use = "there is no queue until it is awaited"]
pub struct TestQueueBuilder {
    states: States,
    tasks: Option<Vec<Task>>,
    starts_at: SystemTime,
    patience: Duration,
    is_inline: bool,
}

impl TestQueueBuilder {
    pub(super) fn new() -> Self {
        Self {
            states: States::default(),
            tasks: None,
            starts_at: SystemTime::now(),
            patience: PATIENCE,
            is_inline: false,
        }
    }

    /// Gives the worker a state for the `#[state]` parameters of its type, as
    /// [`WorkerBuilder::state`](crate::WorkerBuilder::state) does.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, state: S) -> Self {
        self.states.insert(state);
        self
    }

    /// Runs these tasks alone, and insists that it is given all their states. Defaults to those of all linked tasks whose
    /// states it is given: jobs of the others can be enqueued, and are told as [`waiting`](super::Drained::waiting), with what
    /// they lack.
    pub fn tasks(mut self, tasks: impl IntoIterator<Item = Task>) -> Self {
        self.tasks = Some(tasks.into_iter().collect());
        self
    }

    /// Lets the clock show `moment` at the beginning. Defaults to what the system's clock shows.
    pub fn starts_at(mut self, moment: SystemTime) -> Self {
        self.starts_at = moment;
        self
    }

    /// How long a drain waits, in real time, while nothing but bodies is at work, before it tells them as
    /// [`running`](super::Drained::running). Defaults to 5 s. Whatever happens meanwhile begins it anew.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs each job when it is enqueued: the enqueue is answered when the job has ended, so that its handle has the result.
    ///
    /// Time passes as far as the job needs it: for its delay, its retries, its deferrals, and the rates before it. One that
    /// cannot end so, because it is paused, defers itself for ever (1,000 times are enough) or its body does not return, is
    /// left as it is. What a body itself enqueues, or anyone else while jobs are run, is stored at once and runs beside.
    ///
    /// A job is run on the test's runtime: in a runtime of one thread, `.await` the enqueue; its `.blocking()` would keep
    /// that thread from running the job.
    ///
    /// ```rust,standalone_crate
    /// # use flexiq::testing::TestQueue;
    /// # #[flexiq::task]
    /// # async fn double(number: u32) -> Result<u32, flexiq::Retry> { Ok(2 * number) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> flexiq::Result<()> {
    /// let test = TestQueue::builder().inline().await;
    /// let job = enqueue_double(test.queue(), 21).await?;
    /// assert_eq!(job.result().await?, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub fn inline(mut self) -> Self {
        self.is_inline = true;
        self
    }

    async fn open(self) -> Result<TestQueue> {
        let tasks = self.settle_tasks()?;
        let (clock, hands) = Clock::manual(Timestamp::from(self.starts_at));
        let mut options = SqliteOptions::new(Location::Memory);
        options.clock = clock.clone();
        // In memory nobody holds a lock.
        options.timeout = Duration::MAX;
        let store = SqliteStore::open(options).await?;
        let queue = Queue::of_store(store.clone());
        let mut driver = Driver::new(store.clone(), queue.clone(), hands, tasks, self.states, self.patience);
        driver.serve().await?;
        let driver = Arc::new(Mutex::new(driver));
        let queue = match self.is_inline {
            true => queue.followed_by(Arc::new(Inline(driver.clone()))),
            false => queue,
        };
        Ok(TestQueue { queue, clock, store, driver })
    }

    /// The tasks that the worker runs.
    fn settle_tasks(&self) -> Result<Vec<Task>> {
        let lacks = |task: &TaskDefinition| task.missing_states(&self.states);
        let registry = match &self.tasks {
            Some(tasks) => Registry::of(tasks.iter().copied())?,
            None => Registry::linked()?,
        };
        let missing: Vec<String> = registry.iter().flat_map(lacks).collect();
        if self.tasks.is_some() && !missing.is_empty() {
            return Err(Error::MissingState { missing, given: self.states.type_names() });
        }
        let can_run = |task: &&'static TaskDefinition| lacks(task).is_empty() && task.not_built().is_empty();
        Ok(registry.iter().filter(can_run).map(Task::of).collect())
    }
}

impl IntoFuture for TestQueueBuilder {
    type Output = TestQueue;
    type IntoFuture = Pin<Box<dyn Future<Output = TestQueue> + Send>>;

    /// Opens the queue, on the runtime that this is awaited on.
    ///
    /// # Panics
    ///
    /// If the [`tasks`](TestQueueBuilder::tasks) that were named need states that were not given, or two linked tasks have
    /// one name.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { super::expect(self.open().await) })
    }
}

impl fmt::Debug for TestQueueBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestQueueBuilder")
            .field("states", &self.states)
            .field("tasks", &self.tasks)
            .field("starts_at", &self.starts_at)
            .field("patience", &self.patience)
            .field("is_inline", &self.is_inline)
            .finish()
    }
}
