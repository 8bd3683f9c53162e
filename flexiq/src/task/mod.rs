//! A task: an annotated function, its declared limits, and how a stored payload becomes a call of it.
//!
//! The macro fills these types in; the queue and the worker read them. Nothing here knows a store.

mod context;
mod definition;

pub use context::{Context, RunInfo};
pub use definition::{
    Cron, Input, Kind, Parameter, PerPartition, Place, Running, StateNeed, States, TaskDefinition, Unique,
    UniqueUntil,
};
