//! A task: an annotated function, its declared limits, and how a stored payload becomes a call of it.
//!
//! The macro fills these types in; the queue and the worker read them. Nothing here knows a store.

mod call;
mod context;
mod declaration;
mod definition;
mod keys;
mod limit;
mod notes;
mod parameter;
mod payload;
mod registry;
mod retry;
mod returns;

pub use call::Call;
pub use context::{Context, RunInfo};
pub use declaration::Declaration;
#[cfg(feature = "cli")]
pub(crate) use declaration::DeclaredParameter;
pub use definition::{
    Cron, Input, Kind, Parameter, PerPartition, Place, Running, StateNeed, States, TaskDefinition, Unique,
    UniqueUntil,
};
pub use keys::{Key, key_of};
pub(crate) use keys::{arguments_key, key_text, partition_name};
pub(crate) use limit::{Asking, GivesBack, Grants, Returning, Wanted};
pub use limit::{Limit, Permit};
pub use notes::Told;
pub(crate) use notes::{Notebook, Tells};
pub use parameter::{
    Argument, ContextParameter, HasDefault, Param, SharedState, StateParam, argument, context, default_of,
    state,
};
pub use payload::{Misfit, Payload};
pub use registry::{Entry, Registry, Task};
pub use retry::Retry;
pub use returns::{ReturnValue, TaskError, TaskReturn};
