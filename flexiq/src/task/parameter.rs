//! Parameters: what the macro writes down of each, and the one place that says what their types must be able to do.
//!
//! The bounds are traits of our own, so that a type that does not fit gets one message in the user's words.

use std::any::{TypeId, type_name};
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::payload::describe;
use super::{Context, Input, Parameter, StateNeed, States, TaskDefinition};
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

/// One payload parameter with its type, which [`argument`] has checked.
pub struct Param<T> {
    parameter: Parameter,
    encode: fn(&T, &mut Vec<u8>) -> serde_json::Result<()>,
    decode: fn(&str) -> serde_json::Result<T>,
}

/// A payload parameter. Its type is checked here and nowhere else, so that a misfit is one message.
pub const fn argument<T: Argument>(name: &'static str, required: bool, secret: bool) -> Param<T> {
    Param { parameter: Parameter { name, required, secret }, encode: T::encode, decode: T::decode }
}

impl<T> Param<T> {
    /// What is known of it without its type.
    pub const fn parameter(&self) -> Parameter {
        self.parameter
    }

    pub(super) fn encode(&self, value: &T, json: &mut Vec<u8>) -> serde_json::Result<()> {
        (self.encode)(value, json)
    }

    /// Decodes the field; the refusal says what did not fit, and holds no part of the value.
    pub(super) fn decode(&self, field: &RawValue) -> Result<T, String> {
        (self.decode)(field.get()).map_err(|error| match self.parameter.secret {
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

/// What a `#[default]` parameter's type must be able to do.
#[diagnostic::on_unimplemented(
    message = "`#[default]` finds no `Default` for `{Self}`",
    label = "not `Default`",
    note = "write the value, as in `#[default = EXPR]`"
)]
pub trait HasDefault {
    #[doc(hidden)]
    fn default_of() -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Default> HasDefault for T {
    fn default_of() -> Self {
        T::default()
    }
}

/// The value of a `#[default]` parameter that a payload does not name.
pub fn default_of<T: HasDefault>() -> T {
    T::default_of()
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

/// One `#[state]` parameter with its type, which [`state`] has checked.
pub struct StateParam<T> {
    need: StateNeed,
    get: fn(&States) -> Option<T>,
}

/// A `#[state]` parameter. Its type is checked here and nowhere else.
pub const fn state<T: SharedState>(name: &'static str) -> StateParam<T> {
    let need = StateNeed { parameter: name, type_id: TypeId::of::<T>, type_name: type_name::<T> };
    StateParam { need, get: States::get::<T> }
}

impl<T> StateParam<T> {
    /// What a worker must be given.
    pub const fn need(&self) -> StateNeed {
        self.need
    }

    /// A clone of the worker's state.
    pub fn take(&self, task: &TaskDefinition, input: &Input) -> Result<T, Outcome> {
        // A worker that lacks a state refuses to start, so only a direct call of the definition gets here without.
        (self.get)(&input.states).ok_or_else(|| Outcome::Failed {
            error: format!("missing state {:?} of task {}", self.need, task.name),
            after: After::Never,
        })
    }
}

impl<T> fmt::Debug for StateParam<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.need.fmt(f)
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

/// A `#[context]` parameter, as a function that takes it from the input. Its type is checked here and nowhere else.
pub const fn context<T: ContextParameter>() -> fn(&Input) -> T {
    T::take
}
