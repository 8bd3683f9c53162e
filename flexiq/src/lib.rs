//! flexiq runs Rust functions as background jobs.
//!
//! Annotate a function, call the `enqueue_*` function that the annotation generates, and start any number of workers.
//! Jobs lie in a store: an embedded SQLite file, which several processes of one host may share, or Redis for a fleet.
//!
//! ```
//! use flexiq::{Queue, Retry};
//!
//! /// Renders one monthly report.
//! #[flexiq::task(queue = "reports", max_in_flight_per_task = 3)]
//! async fn build_report(month: String) -> Result<String, Retry> {
//!     Ok(format!("the report of {month}"))
//! }
//!
//! #[tokio::main]
//! async fn main() -> flexiq::Result<()> {
//!     let queue = Queue::open("sqlite::memory:").await?;
//!     let job = enqueue_build_report(&queue, "2026-10".into()).await?;
//!
//!     let worker = queue.worker().start().await?;
//!     assert_eq!(job.result().await?, "the report of 2026-10");
//!     worker.shutdown().await
//! }
//! ```
//!
//! A job that may not run yet gives its slot back, and such deferrals are counted apart from failures: [`Retry`] says
//! how a task asks for later. [`task`](macro@task) lists the arguments of the attribute, [`Queue`] enqueues and turns
//! the knobs, [`WorkerBuilder`] sets a worker.

// A build without a store, or without what tests need, needs less of the engine. The full build knows what is dead.
#![cfg_attr(
    not(all(feature = "sqlite", feature = "internals", feature = "testing")),
    allow(dead_code, unused_imports)
)]

// In the order in which the code is best read: what is stored, what a call becomes, the verbs, the worker.
mod job;

mod task;

mod queue;

mod store;

mod worker;

#[cfg(feature = "cli")]
mod cli;

#[cfg(feature = "testing")]
pub mod testing;

mod policy;

mod clock;
mod error;
mod id;
mod name;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

/// The command line, for its own program.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::main as __cli;

/// The engine's types, for this project's own tests and benchmarks. Exempt from semver.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub use crate::clock::{Clock, ManualClock, Timestamp};
    pub use crate::job::{
        After, DeadReason, Due, Held, Hold, Line, MOST_BYTES, MOST_LINES, MOST_SETBACKS, Notes, Outcome,
        ScheduledReason, Transition, Value,
    };
    pub use crate::name::Name;
    pub use crate::policy::{
        Admission, Backoff, Budgets, Counters, CronSchedule, Gate, LATEST, Log, Pace, Plan, RESERVED, Rate,
        Seen, Shut, Verdict, after_run, fallback, hold_of, is_poison, longest, most, plan,
    };
    pub use crate::store::*;
    pub use crate::task::{Call, Declaration, Input, Registry, Running, States, TaskDefinition};
}

pub use error::{Effect, Error, Result};
pub use flexiq_macros::task;
pub use job::{
    DeadReason, Job, JobFailure, JobId, LogLine, Progress, ScheduledReason, Setback, SetbackKind, State,
    Story,
};
pub use name::Name;
pub use policy::Rate;
pub use queue::{
    Answer, AnyQueue, Batch, Checkup, Cursor, Declarer, Enqueue, HomeQueue, JobHandle, JobPage, Jobs,
    KnobSetting, KnobValue, NewSchedule, Queue, QueueBuilder, QueueStats, RunStats, ScheduleStatus,
    SlotStats, Stats, TaskExplanation, TaskInQueue, TaskStats, Warning, WorkerStats,
};
pub use store::{
    Cancelled, Cause, Ended, Explanation, Finding, FindingKind, Holder, Limits, LiveWorker, Origin,
    Overrides, Scope, Standing, TaskCounts, WorkerId,
};
pub use task::{Context, Limit, Permit, Retry, Task, Told};
pub use worker::{Health, Trouble, Worker, WorkerBuilder};
