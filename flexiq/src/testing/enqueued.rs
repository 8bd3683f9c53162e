//! A stored job with its arguments, as a test sees it.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::job::Job;
use crate::task::Task;

/// Bytes of a job's arguments that are shown.
const MOST_SHOWN: usize = 1_000;

/// A stored job and its arguments: [`TestQueue::enqueued`](super::TestQueue::enqueued).
///
/// `Debug` and `Display` show `#[secret]` values as `•••`.
#[derive(Clone)]
#[non_exhaustive]
pub struct EnqueuedJob {
    /// The job: where it is in its life, when it is due, its queue, priority and counters.
    pub job: Job,
    task: Task,
    arguments: Map<String, Value>,
}

impl EnqueuedJob {
    pub(super) fn new(task: Task, job: Job, payload: &[u8]) -> Self {
        // An object, unless this is a test of what becomes of a payload that does not fit.
        let arguments = serde_json::from_slice(payload).unwrap_or_default();
        Self { job, task, arguments }
    }

    /// The argument of this parameter, as a value of its type.
    ///
    /// # Panics
    ///
    /// If there is no such argument, or it is not a `T`; no part of it is shown.
    #[track_caller]
    pub fn argument<T: DeserializeOwned>(&self, parameter: &str) -> T {
        let Some(value) = self.raw(parameter) else {
            panic!("a job of task {} has no argument {parameter}", self.task.name());
        };
        match T::deserialize(value) {
            Ok(value) => value,
            Err(_) => panic!(
                "argument {parameter} of task {} is no {}",
                self.task.name(),
                std::any::type_name::<T>()
            ),
        }
    }

    pub(super) fn raw(&self, parameter: &str) -> Option<&Value> {
        self.arguments.get(parameter)
    }
}

/// Whether a parameter's values are not to be shown.
pub(super) fn is_secret(task: Task, parameter: &str) -> bool {
    task.definition().parameters.iter().any(|known| known.name == parameter && known.secret)
}

impl fmt::Display for EnqueuedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Job { id, state, queue, .. } = &self.job;
        write!(f, "job {id}, {state} in queue {queue}: ")?;
        let mut shown = self.arguments.clone();
        for (parameter, value) in &mut shown {
            if is_secret(self.task, parameter) {
                *value = "•••".into();
            }
        }
        let shown = Value::Object(shown).to_string();
        match shown.char_indices().map(|(at, _)| at).find(|&at| at >= MOST_SHOWN) {
            Some(cut) => write!(f, "{}… ({} bytes)", &shown[..cut], shown.len()),
            None => f.write_str(&shown),
        }
    }
}

impl fmt::Debug for EnqueuedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
