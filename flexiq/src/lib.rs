//! flexiq runs Rust functions as background jobs.
#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod clock;
mod error;
pub mod job;
mod name;
mod policy;
mod task;

pub use error::{Effect, Error, Result};
pub use job::{Job, JobFailure, JobId, State};
pub use task::Context;
