//! What tests of a user's own tasks need: a queue in memory, a clock that the test moves, and a worker that works when it
//! is told to. Feature `testing`.
//!
//! It is the engine itself: the SQLite store in memory, the worker's pump, its executor and its policies. What a test sees
//! is what a fleet of one worker would do. No server is needed, nothing sleeps, and each [`TestQueue`] is a world of its own,
//! so that tests may run side by side in one process.
//!
//! ```rust,standalone_crate
//! use std::time::Duration;
//!
//! use flexiq::testing::{TestQueue, assert_enqueued};
//! use flexiq::{Queue, Retry};
//!
//! # #[derive(Clone)]
//! # struct Mailer;
//! # impl Mailer { fn fake() -> Self { Self } fn send(&self, _: &str, _: &str) {} }
//! /// The code to be tested: a task,
//! #[flexiq::task(queue = "emails", rate_limit = "1/m")]
//! async fn welcome(#[state] mailer: Mailer, to: String, #[secret] token: String) {
//!     mailer.send(&to, &token);
//! }
//!
//! /// and what enqueues it.
//! async fn register(queue: &Queue, address: &str) -> flexiq::Result<()> {
//!     enqueue_welcome(queue, address.into(), "hunter2".into()).await?;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> flexiq::Result<()> {
//! let test = TestQueue::builder().state(Mailer::fake()).await;
//! register(test.queue(), "ada@example.com").await?;
//! register(test.queue(), "grace@example.com").await?;
//! assert_enqueued!(test, welcome, to == "ada@example.com");
//! assert_enqueued!(test, 2 of welcome);
//!
//! let told = test.drain().await;
//! assert_eq!((told.succeeded(), told.waiting.len()), (1, 1)); // the rate lets one start in a minute
//! let told = test.advance(Duration::from_secs(60)).await; // takes no time
//! assert_eq!((told.succeeded(), told.waiting.len()), (1, 0));
//! # Ok(())
//! # }
//! ```
//!
//! # Time
//!
//! Delays, retries, deferrals, rates, expiry, retention and a task's `timeout` go by the test's clock, which begins at the
//! moment at which the test does, and stands still until [`advance`](TestQueue::advance) moves it. [`now`](TestQueue::now)
//! is what it shows.
//!
//! What a body does by itself goes by other clocks: `SystemTime::now()` is the system's, and `tokio::time::sleep` really
//! sleeps, as long as the test's runtime does. On a runtime whose time stands still (`#[tokio::test(start_paused = true)]`)
//! tokio moves its own clock whenever nothing else is to do, so that such a sleep takes no time either; flexiq's clock does
//! not move with it.
//!
//! A body that waits for what does not come holds a drain up for the [`patience`](TestQueueBuilder::patience), and is then told
//! as [`running`](Drained::running); a later drain goes on with it, and `advance` past its `timeout` ends it.

pub(crate) mod assert;
mod builder;
mod drained;
mod driver;
mod enqueued;
mod inline;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex;

pub use builder::TestQueueBuilder;
pub use drained::{Drained, End, Run, Waiting};
pub use enqueued::EnqueuedJob;

/// Asserts which jobs of a task are stored: `assert_enqueued!(test, build_report, month == "2026-10")`.
///
/// Behind a [`TestQueue`] comes the task, then any number of its payload parameters with what they must be equal to: values
/// of any type that is `Serialize`, compared as JSON. `3 of build_report` says how many such jobs there must be, `(count) of
/// build_report` with any expression, and `0 of build_report` that there is none; without a number it is one or more. A
/// parameter that the task does not have is a compile error.
///
/// What counts is what is stored: jobs that wait or run, and those that have ended and are still kept. `queue`, `state`,
/// `due_at` and the rest of a job are in [`enqueued`](TestQueue::enqueued).
///
/// # Panics
///
/// If it is not so, with the jobs of the task that are stored; `#[secret]` values are shown as `•••`. Also where the store
/// cannot be read.
///
/// ```rust,standalone_crate
/// use flexiq::testing::{TestQueue, assert_enqueued};
///
/// mod reports {
///     #[flexiq::task]
///     pub async fn print_report(month: String, copies: u8) {}
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> flexiq::Result<()> {
/// let test = TestQueue::builder().await;
/// reports::enqueue_print_report(test.queue(), "2026-10".into(), 2).await?;
/// assert_enqueued!(test, reports::print_report);
/// assert_enqueued!(test, reports::print_report, month == "2026-10", copies == 2);
/// assert_enqueued!(test, 1 of reports::print_report);
/// assert_enqueued!(test, 0 of reports::print_report, month == "2026-11");
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use crate::__assert_enqueued as assert_enqueued;
use crate::clock::Clock;
use crate::error::Result;
use crate::queue::{Answer, Queue};
use crate::store::sqlite::SqliteStore;
use crate::task::Task;
use driver::Driver;

/// The macro [`testing::assert_enqueued`](crate::testing::assert_enqueued), where `macro_rules!` puts it.
#[doc(hidden)]
#[macro_export]
macro_rules! __assert_enqueued {
    ($($input:tt)*) => {
        $crate::__private::assert_enqueued_in!($crate; $($input)*)
    };
}

/// A queue of one test: a store in memory, a clock that the test moves, and a worker that works when it is told to.
///
/// [`builder`](Self::builder) makes one. Several in one process do not know each other. What is said here of panics is of
/// mistakes in the test and of a store that fails: what a body does, an error or a panic, is told as data.
pub struct TestQueue {
    queue: Queue,
    clock: Clock,
    store: Arc<SqliteStore>,
    driver: Arc<Mutex<Driver>>,
}

impl TestQueue {
    /// A queue of this test, to be given states, and awaited.
    pub fn builder() -> TestQueueBuilder {
        TestQueueBuilder::new()
    }

    /// The handle that the code to be tested takes.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The moment that the test's clock shows.
    pub fn now(&self) -> SystemTime {
        self.clock.now().into()
    }

    /// Runs all that may run now, and what becomes of it that may run now, too; says what happened. The clock stands still.
    ///
    /// It does not panic for what the bodies do: [`Drained::expect_all_succeeded`] does.
    ///
    /// # Panics
    ///
    /// If the worker cannot be started.
    pub async fn drain(&self) -> Drained {
        let mut driver = self.driver.lock().await;
        let told = async {
            driver.drain().await?;
            driver.told().await
        };
        expect(told.await)
    }

    /// Lets `time` pass, and runs what may run meanwhile, each at its moment: first all that may run now, then what becomes
    /// due, is tried again or is let start by a rate on the way, and last what may run at the end. Says what happened, as
    /// [`drain`](Self::drain) does.
    ///
    /// Real time does not pass: the clock goes from one moment at which something may start to the next. What happens so is
    /// what would have happened with a worker at work all the time.
    ///
    /// # Panics
    ///
    /// If the worker cannot be started.
    pub async fn advance(&self, time: Duration) -> Drained {
        let mut driver = self.driver.lock().await;
        let told = async {
            driver.advance(time).await?;
            driver.told().await
        };
        expect(told.await)
    }

    /// The stored jobs of a task, oldest first: those that wait or run, and those that have ended and are still kept.
    ///
    /// ```rust,standalone_crate
    /// # use flexiq::testing::TestQueue;
    /// # #[flexiq::task]
    /// # async fn congratulate(to: String) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> flexiq::Result<()> {
    /// # let test = TestQueue::builder().await;
    /// enqueue_congratulate(test.queue(), "ada@example.com".into()).priority(7).await?;
    /// let [only] = &test.enqueued(task_congratulate())[..] else { panic!("one") };
    /// assert_eq!(only.argument::<String>("to"), "ada@example.com");
    /// assert_eq!(only.job.priority, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the store cannot be read.
    pub fn enqueued(&self, task: Task) -> Vec<EnqueuedJob> {
        let store = self.store.clone();
        let name = crate::name::Name::from_static(task.name());
        let calls = expect(Answer::new(async move { store.calls_of(name).await }).blocking());
        calls.into_iter().map(|(job, payload)| EnqueuedJob::new(task, job, &payload.bytes)).collect()
    }
}

/// A test kit fails the test where others would give an error to handle.
#[track_caller]
fn expect<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

impl fmt::Debug for TestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestQueue").field("now", &self.now()).finish_non_exhaustive()
    }
}
