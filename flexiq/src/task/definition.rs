//! What the macro writes down of one annotated function, and what a worker hands to it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::Context;
use crate::error::Error;
use crate::job::Outcome;
use crate::policy::{Budgets, Rate};

/// Everything that is known of one task at compile time.
pub struct TaskDefinition {
    /// The stored task name.
    pub name: &'static str,
    /// The task's home queue.
    pub queue: &'static str,
    /// Whether a call may name another queue.
    pub any_queue: bool,
    /// Where it is written, for messages.
    pub place: Place,
    /// On what it runs.
    pub kind: Kind,
    /// Its payload parameters, in order.
    pub parameters: &'static [Parameter],
    /// The states it needs.
    pub states: &'static [StateNeed],
    /// Jobs running at once on the whole fleet.
    pub max_concurrent: Option<u32>,
    /// Jobs of this task in one worker at once.
    pub max_in_flight_per_task: Option<u32>,
    /// Starts per period, all of which hold.
    pub rates: &'static [Rate],
    /// The partition of a call, and limits for each.
    pub partition: Option<PerPartition>,
    /// What of each ending is forgiven.
    pub budgets: Budgets,
    /// A run longer than this is a failure.
    pub timeout: Option<Duration>,
    /// A job not started within this of its due time is expired.
    pub expires: Option<Duration>,
    /// How long a succeeded job is kept; `None` is 1 h with a value and 5 min for `()`.
    pub result_ttl: Option<Duration>,
    /// Higher first, from −100 to 100.
    pub priority: i8,
    /// At most one job per key.
    pub unique: Option<Unique>,
    /// One job per tick.
    pub cron: Option<Cron>,
    /// Decodes the payload and prepares one run.
    pub run: fn(Input) -> Running,
}

impl TaskDefinition {
    /// The states that this task needs and `given` lacks, each as `renderer: my_app::Renderer of task build_report`.
    pub fn missing_states(&self, given: &States) -> Vec<String> {
        let missing = self.states.iter().filter(|need| !given.has((need.type_id)()));
        missing.map(|need| format!("{need:?} of task {}", self.name)).collect()
    }

    /// The arguments that it was given and whose engine does not exist yet.
    ///
    /// A worker that would serve it refuses to start, and its enqueue is refused: a limit that is not held is worse
    /// than none.
    pub fn not_built(&self) -> Vec<&'static str> {
        let is_both = self.cron.is_some() && self.unique.is_some();
        is_both.then_some("cron beside unique").into_iter().collect()
    }
}

impl fmt::Debug for TaskDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskDefinition")
            .field("name", &self.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Where a task is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// `module_path!()`.
    pub module: &'static str,
    /// `file!()`.
    pub file: &'static str,
    /// `line!()`.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.module, self.file, self.line)
    }
}

/// On what a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An `async fn`, on the runtime.
    Async,
    /// A plain `fn`, on a thread of its own.
    Plain,
}

/// One payload parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its key in the payload.
    pub name: &'static str,
    /// Whether a payload must name it: false with `#[default]`.
    pub required: bool,
    /// Whether its value is shown as `•••`.
    pub secret: bool,
}

/// One `#[state]` parameter.
#[derive(Clone, Copy)]
pub struct StateNeed {
    /// The parameter.
    pub parameter: &'static str,
    /// The type it must have.
    pub type_id: fn() -> TypeId,
    /// The type's name, for messages.
    pub type_name: fn() -> &'static str,
}

impl fmt::Debug for StateNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.parameter, (self.type_name)())
    }
}

/// `partition_by`, and the limits that hold for each of its values.
#[derive(Clone, Copy, Debug)]
pub struct PerPartition {
    /// The partition of a payload.
    pub key: KeyOf,
    /// Jobs of one partition running at once on the whole fleet.
    pub max_concurrent: Option<u32>,
    /// Starts of one partition per period.
    pub rates: &'static [Rate],
    /// Jobs of one partition pending at once.
    pub max_pending: Option<u64>,
}

/// `unique` or `unique_by`.
#[derive(Clone, Copy, Debug)]
pub struct Unique {
    /// The key of a payload; `None` is all arguments.
    pub key: Option<KeyOf>,
    /// When the key is free again.
    pub until: UniqueUntil,
}

/// When a unique key is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniqueUntil {
    /// When the job starts.
    Start,
    /// When the job ends.
    Finish,
}

/// A key made of the parameters of an encoded payload, by the user's expression.
pub type KeyOf = fn(&[u8]) -> Result<String, Error>;

/// `cron`, `timezone` and `catch_up`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    /// Five fields, or six with seconds first.
    pub pattern: &'static str,
    /// An IANA name.
    pub timezone: &'static str,
    /// Whether one missed tick is made up for.
    pub catch_up: bool,
}

/// What a worker hands to [`TaskDefinition::run`].
#[derive(Debug)]
pub struct Input {
    /// The stored JSON object.
    pub payload: Vec<u8>,
    /// What the worker was given with `.state(..)`.
    pub states: States,
    /// For the `#[context]` parameter.
    pub context: Context,
    /// Bytes of an encoded value that are kept at most.
    pub max_result: usize,
}

/// A run that is ready to go.
pub enum Running {
    /// To be polled on the runtime.
    Async(Pin<Box<dyn Future<Output = Outcome> + Send>>),
    /// To be called on a thread.
    Plain(Box<dyn FnOnce() -> Outcome + Send>),
    /// Not to be run: the payload does not fit.
    Refused(Outcome),
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Async(_) => "Running::Async",
            Self::Plain(_) => "Running::Plain",
            Self::Refused(_) => "Running::Refused",
        })
    }
}

/// The states of one worker, by type.
#[derive(Clone, Default)]
pub struct States(Arc<HashMap<TypeId, State>>);

#[derive(Clone)]
struct State {
    type_name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl States {
    /// Adds a state; a later one of the same type replaces it.
    pub fn insert<S: Clone + Send + Sync + 'static>(&mut self, state: S) {
        let entry = State { type_name: std::any::type_name::<S>(), value: Arc::new(state) };
        Arc::make_mut(&mut self.0).insert(TypeId::of::<S>(), entry);
    }

    /// A clone of the state of this type.
    pub fn get<S: Clone + Send + Sync + 'static>(&self) -> Option<S> {
        self.0.get(&TypeId::of::<S>())?.value.downcast_ref::<S>().cloned()
    }

    /// Whether there is a state of this type.
    pub fn has(&self, type_id: TypeId) -> bool {
        self.0.contains_key(&type_id)
    }

    /// Names of the types that are there, sorted.
    pub fn type_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.0.values().map(|state| state.type_name.to_owned()).collect();
        names.sort();
        names
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("States").field(&self.type_names()).finish()
    }
}
