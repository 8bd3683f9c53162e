//! flexiq runs Rust functions as background jobs.
#![allow(dead_code, unused_imports, unreachable_pub)]

mod clock;
mod error;
mod job;
mod name;
mod policy;
mod store;
mod task;

mod queue;
mod worker;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

/// The store trait and its types, for this project's own tests and benchmarks. Exempt from semver.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub use crate::clock::{Clock, ManualClock, Timestamp};
    pub use crate::job::{After, DeadReason, Due, Outcome, ScheduledReason, Transition, Value};
    pub use crate::name::Name;
    pub use crate::policy::{Backoff, Budgets, Counters, Rate, after_run};
    pub use crate::store::*;
    pub use crate::task::{Call, Declaration, Input, Registry, Running, States, TaskDefinition};
}

pub use error::{Effect, Error, Result};
pub use flexiq_macros::task;
pub use job::{DeadReason, Job, JobFailure, JobId, ScheduledReason, State};
pub use name::Name;
pub use policy::Rate;
pub use queue::{Answer, AnyQueue, Batch, Enqueue, HomeQueue, JobHandle, Queue, QueueBuilder};
pub use store::{Cancelled, Limits, Overrides, Scope, Standing, TaskCounts};
pub use task::{Context, Retry, Task};
pub use worker::{Worker, WorkerBuilder};
