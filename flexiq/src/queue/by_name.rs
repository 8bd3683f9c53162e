//! Calling a task by its name, for a producer that does not link its body: checked against what its workers declared.

use std::time::Duration;

use serde_json::{Map, Value};

use super::declared::declared;
use super::draft::{Calling, Draft};
use super::{AnyQueue, Enqueue, Queue};
use crate::error::{Error, Result};
use crate::name::Name;
use crate::store::Store;
use crate::task::{Declaration, Registry};

/// A task that is known by name, and the arguments for it.
pub(super) struct Named {
    task: String,
    arguments: Value,
}

impl Queue {
    /// Calls a task by its name, with its arguments as a JSON object keyed by parameter.
    ///
    /// The call is checked against the task's definition if this program links it, or else against what the newest
    /// worker that linked it declared.
    ///
    /// # Errors
    ///
    /// On awaiting it: [`Error::Unknown`] if no worker ever declared such a task, and [`Error::Invalid`] if a parameter
    /// without default is missing or one is named that the task does not have.
    ///
    /// ```no_run
    /// # async fn example(queue: flexiq::Queue) -> flexiq::Result<()> {
    /// let job = queue.enqueue_by_name("build_report", serde_json::json!({ "month": "2026-10" })).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn enqueue_by_name(&self, task: impl Into<String>, arguments: Value) -> Enqueue<Value, AnyQueue> {
        Enqueue::of_draft(self.clone(), Draft::of_named(Named { task: task.into(), arguments }))
    }
}

impl Named {
    /// Finds the task and checks the arguments against it.
    pub(super) async fn resolve(self, store: &dyn Store) -> Result<Calling> {
        let Value::Object(arguments) = self.arguments else {
            return Err(Error::Invalid {
                what: format!("arguments of task {}", self.task),
                given: "a JSON value that is no object".into(),
                accepted: "an object keyed by parameter name, such as json!({ \"month\": \"2026-10\" })"
                    .into(),
            });
        };
        let calling = match Registry::find(&self.task)? {
            Some(definition) => {
                Declaration::from(definition).check(&arguments)?;
                Calling::of_definition(definition)?
            }
            None => of_declared(store, &self.task, &arguments).await?,
        };
        let payload = serde_json::to_vec(&Value::Object(arguments)).map_err(|source| Error::Encode {
            what: format!("the arguments of task {}", self.task),
            source,
        })?;
        Ok(Calling { payload, ..calling })
    }
}

/// What the store knows of a task that is not linked here.
async fn of_declared(store: &dyn Store, task: &str, arguments: &Map<String, Value>) -> Result<Calling> {
    let declaration = declared(store, task).await?;
    if let Some(argument) = declaration.not_built.first() {
        return Err(Error::NotBuilt { task: task.into(), argument: argument.clone() });
    }
    declaration.check(arguments)?;
    Ok(Calling {
        task: Name::new("task", &declaration.name)?,
        queue: Name::new("queue", &declaration.queue)?,
        any_queue: declaration.any_queue,
        priority: declaration.priority,
        expires: declaration.expires_ms.map(Duration::from_millis),
        payload: Vec::new(),
    })
}
