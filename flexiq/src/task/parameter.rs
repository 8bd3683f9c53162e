//! Parameters: what the macro writes down of each, and the one place that says what their types must be able to do.
//!
//! The bounds are traits of our own, so that a type that does not fit gets one message in the user's words.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::payload::describe;
use super::{Context, Input, Parameter, StateNeed, TaskDefinition};
use crate::job::{After, Outcome};

/// What a payload parameter's type must be able to do.
#[diagnostic::on_unimplemented(
    message = "a task cannot take a parameter of type `{Self}`: it is stored as JSON and read back by a worker",
    label = "not `Serialize + DeserializeOwned + Send + 'static`",
    note = "write `#[derive(serde::Serialize, serde::Deserialize)]` on the type",
    note = "or mark the parameter `#[state]`, if the worker shall supply it"
)]
pub trait Argument: Sized + Send + 'static {
    /// Appends the value to `json`.
    #[doc(hidden)]
    fn encode(&self, json: &mut Vec<u8>) -> serde_json::Result<()>;
    /// Reads the value back.
    #[doc(hidden)]
    fn decode(json: &str) -> serde_json::Result<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> Argument for T {
    fn encode(&self, json: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(json, self)
    }

    fn decode(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }
}

/// One payload parameter with its type.
pub struct Param<T> {
    parameter: Parameter,
    type_of: PhantomData<fn() -> T>,
}

impl<T: Argument> Param<T> {
    /// The parameter, whose type is checked here and nowhere else.
    pub const fn of(parameter: Parameter) -> Self {
        Self { parameter, type_of: PhantomData }
    }

    /// What is known of it without its type.
    pub const fn parameter(&self) -> Parameter {
        self.parameter
    }

    pub(crate) fn encode(&self, value: &T, json: &mut Vec<u8>) -> serde_json::Result<()> {
        value.encode(json)
    }

    /// Decodes the field; the refusal says what did not fit, and holds no part of the value.
    pub(crate) fn decode(&self, field: &RawValue) -> Result<T, String> {
        T::decode(field.get()).map_err(|error| match self.parameter.secret {
            true => format!("the value does not fit {}", type_name::<T>()),
            false => describe(&error),
        })
    }
}

impl<T> fmt::Debug for Param<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parameter.fmt(f)
    }
}

/// What a `#[state]` parameter's type must be able to do.
#[diagnostic::on_unimplemented(
    message = "a task cannot take a state of type `{Self}`: every run gets a clone of it, on any thread",
    label = "not `Clone + Send + Sync + 'static`",
    note = "wrap it, as in `#[state] renderer: Arc<Renderer>`, and give the worker `.state(Arc::new(renderer))`"
)]
pub trait SharedState: Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + 'static> SharedState for T {}

/// One `#[state]` parameter with its type.
pub struct StateParam<T> {
    name: &'static str,
    type_of: PhantomData<fn() -> T>,
}

impl<T: SharedState> StateParam<T> {
    /// The parameter, whose type is checked here and nowhere else.
    pub const fn of(name: &'static str) -> Self {
        Self { name, type_of: PhantomData }
    }

    /// What a worker must be given.
    pub const fn need(&self) -> StateNeed {
        StateNeed { parameter: self.name, type_id: TypeId::of::<T>, type_name: type_name::<T> }
    }

    /// A clone of the worker's state.
    pub fn take(&self, task: &TaskDefinition, input: &Input) -> Result<T, Outcome> {
        // A worker that lacks a state refuses to start, so only a direct call of the definition gets here without.
        input.states.get().ok_or_else(|| Outcome::Failed {
            error: format!("missing state {}: {} of task {}", self.name, type_name::<T>(), task.name),
            after: After::Never,
        })
    }
}

impl<T> fmt::Debug for StateParam<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, type_name::<T>())
    }
}

/// The type of a `#[context]` parameter: [`Context`].
#[diagnostic::on_unimplemented(
    message = "a `#[context]` parameter is of type `flexiq::Context`, not `{Self}`",
    label = "write `flexiq::Context`"
)]
pub trait ContextParameter: Sized {
    #[doc(hidden)]
    fn take(input: &Input) -> Self;
}

impl ContextParameter for Context {
    fn take(input: &Input) -> Self {
        input.context.clone()
    }
}
