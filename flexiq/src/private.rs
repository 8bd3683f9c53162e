//! What generated code names, and nobody else: the whole surface between `#[flexiq::task]` and the runtime.
//!
//! Nothing here is covered by semver.

use std::future::Future;

#[cfg(feature = "testing")]
pub use flexiq_macros::assert_enqueued_in;
pub use inventory;

use crate::error::Error;
pub use crate::job::Outcome;
pub use crate::policy::{Backoff, Budgets, Rate};
use crate::queue::{Enqueue, Queue};
pub use crate::task::{
    Argument, Call, ContextParameter, Cron, Entry, HasDefault, Input, Key, Kind, Misfit, Param, Parameter,
    Payload, PerPartition, Place, ReturnValue, Running, SharedState, StateNeed, StateParam, TaskDefinition,
    TaskError, TaskReturn, Unique, UniqueUntil, argument, context, default_of, key_of, state,
};
#[cfg(feature = "testing")]
pub use crate::testing::assert::{Field, Wanted, assert_enqueued, expect_parameter, field};

/// What an `enqueue_*` function returns.
pub fn enqueue<T, Q>(queue: &Queue, call: Call) -> Enqueue<T, Q> {
    Enqueue::new(queue, call)
}

/// The run that `prepare` makes of the input, or its refusal.
pub fn running(prepare: impl FnOnce() -> Result<Running, Outcome>) -> Running {
    prepare().unwrap_or_else(Running::Refused)
}

/// The outcome of a return type that reads `Result<T, …>`, whose `T` is thereby held to what it reads.
pub fn outcome_of<T, R: TaskReturn<Value = T>>(returned: R, max_result: usize) -> Outcome {
    returned.outcome(max_result)
}

/// The run of an `async fn`.
pub fn run_async<R, F>(future: F, outcome: fn(R, usize) -> Outcome, max_result: usize) -> Running
where
    R: 'static,
    F: Future<Output = R> + Send + 'static,
{
    Running::Async(Box::pin(async move { outcome(future.await, max_result) }))
}

/// The run of a plain `fn`.
pub fn run_plain<R, F>(call: F, outcome: fn(R, usize) -> Outcome, max_result: usize) -> Running
where
    R: 'static,
    F: FnOnce() -> R + Send + 'static,
{
    Running::Plain(Box::new(move || outcome(call(), max_result)))
}

/// What a `partition_by` or `unique_by` function returns.
pub type KeyResult = Result<String, Error>;
