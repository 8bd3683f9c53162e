//! What a running task may ask of its worker.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::notes::Notebook;
use super::{Grants, Retry, Tells};
use crate::clock::Timestamp;
use crate::job::{Held, Hold, JobId};
use crate::name::Name;

/// What a running task may ask of its worker: a parameter marked `#[context]` receives it.
///
/// Cheap to clone. [`Context::for_test`] makes one for calling a task directly.
#[derive(Clone)]
pub struct Context {
    pub(super) run: Arc<RunInfo>,
    token: CancellationToken,
    runtime: Option<Handle>,
    /// Who grants permits of named limits.
    pub(super) grants: Option<Arc<dyn Grants>>,
    /// Who hears what it tells of itself.
    pub(super) tells: Option<Arc<dyn Tells>>,
    /// The `Queue`, which stands above this module: `Context::queue` is written there.
    pub(crate) queue: Option<Arc<dyn Any + Send + Sync>>,
}

/// The facts of one run, and what it has noted.
#[derive(Debug)]
pub struct RunInfo {
    /// The job.
    pub job: JobId,
    /// Its task.
    pub task: String,
    /// Its queue.
    pub queue: Name,
    /// The number of this run, from 1.
    pub run: u32,
    /// Failures before this run.
    pub failures: u32,
    /// Deferrals before this run.
    pub deferrals: u32,
    /// Losses before this run.
    pub losses: u32,
    /// Failures that are forgiven.
    pub max_retries: u32,
    /// The store's moment of its claim,
    pub claimed_at: Timestamp,
    /// and when it began, by the monotonic clock of this process.
    pub began: Duration,
    /// What it has noted.
    pub(crate) notebook: Notebook,
}

impl Context {
    pub(crate) fn new(
        run: RunInfo,
        token: CancellationToken,
        runtime: Handle,
        grants: Arc<dyn Grants>,
        tells: Arc<dyn Tells>,
        queue: impl Any + Send + Sync,
    ) -> Self {
        Self {
            run: Arc::new(run),
            token,
            runtime: Some(runtime),
            grants: Some(grants),
            tells: Some(tells),
            queue: Some(Arc::new(queue)),
        }
    }

    /// A context of a first run, for calling a task directly in a test.
    ///
    /// It has no queue to enqueue on, grants every permit, and nobody cancels it. What the task tells of itself is read by
    /// [`told`](Self::told).
    ///
    /// ```
    /// let context = flexiq::Context::for_test();
    /// assert_eq!(context.attempt(), 1);
    /// ```
    pub fn for_test() -> Self {
        let run = RunInfo {
            job: JobId::new(),
            task: "test".into(),
            queue: Name::from_static("default"),
            run: 1,
            failures: 0,
            deferrals: 0,
            losses: 0,
            max_retries: 10,
            claimed_at: Timestamp::default(),
            began: Duration::ZERO,
            notebook: Notebook::default(),
        };
        let token = CancellationToken::new();
        Self { run: Arc::new(run), token, runtime: None, grants: None, tells: None, queue: None }
    }

    /// The id of the running job.
    pub fn job_id(&self) -> JobId {
        self.run.job
    }

    /// The name of its task.
    pub fn task(&self) -> &str {
        &self.run.task
    }

    /// The name of its queue.
    pub fn queue_name(&self) -> &str {
        &self.run.queue
    }

    /// The number of this run, from 1: it grows with every start, so that an outside system can refuse an older run
    /// (a fencing token).
    pub fn run(&self) -> u32 {
        self.run.run
    }

    /// The attempt, `failures + 1`: a deferral does not move it.
    pub fn attempt(&self) -> u32 {
        self.run.failures.saturating_add(1)
    }

    /// Whether a failure of this run ends the job as dead.
    pub fn is_last_attempt(&self) -> bool {
        self.run.failures >= self.run.max_retries
    }

    /// Runs of this job that ended in an error, a panic or a timeout.
    pub fn failures(&self) -> u32 {
        self.run.failures
    }

    /// Runs of this job in which it asked for later.
    pub fn deferrals(&self) -> u32 {
        self.run.deferrals
    }

    /// Runs of this job whose worker was lost.
    pub fn losses(&self) -> u32 {
        self.run.losses
    }

    /// Whether this run should stop: its job was cancelled, its time is over, its lease is lost, or the worker's grace
    /// has ended.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until this run should stop.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Starts no job of this task for `length`, at least 10 ms: what a body says that was told "429, wait 30 s".
    ///
    /// It is what the body returns: the run counts as a deferral, and its job goes back to its old place, so that it is
    /// the first to start again. The hold begins with the end of the run, in its queue, for the whole fleet. It never ends
    /// an earlier hold sooner; [`Queue::resume_task`](crate::Queue::resume_task) ends it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn post(_: &str) -> Result<(), Duration> { Err(Duration::from_secs(30)) }
    /// #[flexiq::task]
    /// fn notify(#[context] context: flexiq::Context, message: String) -> Result<(), flexiq::Retry> {
    ///     post(&message).map_err(|retry_after| context.hold_task(retry_after))
    /// }
    /// # assert!(notify(flexiq::Context::for_test(), "hello".into()).is_err());
    /// ```
    #[must_use = "it takes effect when the task returns it as its error"]
    pub fn hold_task(&self, length: Duration) -> Retry {
        Retry::hold(Hold { what: Held::Task, length })
    }

    /// Starts no job of this partition for `length`, as [`hold_task`](Self::hold_task) does of the whole task. Where the
    /// task has no `partition_by`, it holds the task.
    #[must_use = "it takes effect when the task returns it as its error"]
    pub fn hold_partition(&self, length: Duration) -> Retry {
        Retry::hold(Hold { what: Held::Partition, length })
    }

    /// Starts no job of this queue for `length`, as [`hold_task`](Self::hold_task) does of the task.
    #[must_use = "it takes effect when the task returns it as its error"]
    pub fn hold_queue(&self, length: Duration) -> Retry {
        Retry::hold(Hold { what: Held::Queue, length })
    }

    /// Runs a future to its end from a plain function, on the worker's runtime.
    ///
    /// # Panics
    ///
    /// If it is called from an `async fn`, where `.await` is the way, or on a context [`for_test`](Self::for_test)
    /// outside of a runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match &self.runtime {
            Some(runtime) => runtime.block_on(future),
            None => Handle::current().block_on(future),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("run", &self.run).finish_non_exhaustive()
    }
}
