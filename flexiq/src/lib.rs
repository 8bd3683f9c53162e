//! flexiq runs Rust functions as background jobs.
#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod clock;
mod error;
pub mod job;
mod name;
mod policy;
mod store;
mod task;

/// The store trait and its types, for this project's own tests and benchmarks. Exempt from semver.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub use crate::name::Name;
    pub use crate::policy::{Backoff, Budgets, Counters, Rate, after_run};
    pub use crate::store::*;
}

pub use error::{Effect, Error, Result};
pub use job::{Job, JobFailure, JobId, State};
pub use task::{Context, Retry, Task};
