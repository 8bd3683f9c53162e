//! The tasks that a worker or producer knows: what is linked, or what it was told.

use std::collections::BTreeMap;
use std::fmt;

use super::TaskDefinition;
use crate::error::{Error, Result};

/// One annotated function, as `worker.tasks([..])` takes it.
///
/// For a task `build_report`, the attribute generates `task_build_report()` beside `enqueue_build_report`:
///
/// ```ignore
/// queue.worker().tasks([task_build_report(), emails::task_send_email()])
/// ```
#[derive(Clone, Copy)]
pub struct Task(&'static TaskDefinition);

impl Task {
    /// The task of this definition. Called by generated code.
    #[doc(hidden)]
    pub const fn of(definition: &'static TaskDefinition) -> Self {
        Self(definition)
    }

    /// Its stored name.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The queue it lives in.
    pub fn queue(&self) -> &'static str {
        self.0.queue
    }

    #[doc(hidden)]
    pub const fn definition(&self) -> &'static TaskDefinition {
        self.0
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({} at {})", self.0.name, self.0.place)
    }
}

/// What each annotated function hands in at link time.
#[derive(Debug)]
pub struct Entry(pub &'static TaskDefinition);

inventory::collect!(Entry);

/// Tasks by name.
#[derive(Clone, Debug, Default)]
pub struct Registry(BTreeMap<&'static str, &'static TaskDefinition>);

impl Registry {
    /// Every task that is linked into this program.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateTask`] if two have one name.
    pub fn linked() -> Result<Self> {
        Self::of(inventory::iter::<Entry>.into_iter().map(|entry| Task(entry.0)))
    }

    /// The linked task of this name, without looking at the others.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateTask`] if two have it.
    pub fn find(name: &str) -> Result<Option<&'static TaskDefinition>> {
        let mut found =
            inventory::iter::<Entry>.into_iter().map(|entry| entry.0).filter(|task| task.name == name);
        match (found.next(), found.next()) {
            (Some(one), Some(other)) => Err(duplicate(one, other)),
            (found, _) => Ok(found),
        }
    }

    /// The names of all linked tasks.
    pub fn names() -> impl Iterator<Item = &'static str> {
        inventory::iter::<Entry>.into_iter().map(|entry| entry.0.name)
    }

    /// The home queues of all linked tasks.
    pub fn homes() -> impl Iterator<Item = &'static str> {
        inventory::iter::<Entry>.into_iter().map(|entry| entry.0.queue)
    }

    /// These tasks; one that is named twice counts once.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateTask`] if two have one name.
    pub fn of(tasks: impl IntoIterator<Item = Task>) -> Result<Self> {
        let mut known = BTreeMap::new();
        for Task(task) in tasks {
            match known.insert(task.name, task) {
                Some(earlier) if !std::ptr::eq(earlier, task) => return Err(duplicate(earlier, task)),
                _ => {}
            }
        }
        Ok(Self(known))
    }

    /// The task of this name.
    pub fn get(&self, name: &str) -> Option<&'static TaskDefinition> {
        self.0.get(name).copied()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'static TaskDefinition> + '_ {
        self.0.values().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn duplicate(one: &TaskDefinition, other: &TaskDefinition) -> Error {
    // The order of linking is nobody's choice, so that of the message is fixed here.
    let mut places = [one.place.to_string(), other.place.to_string()];
    places.sort();
    let [first, second] = places;
    Error::DuplicateTask { name: one.name.into(), first, second }
}
