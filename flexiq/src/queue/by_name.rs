//! Calling a task by its name, for a producer that does not link its body: checked against what its workers declared.

use std::time::Duration;

use serde_json::Value;

use super::declared::declared;
use super::draft::{Calling, Draft};
use super::uniqueness::OfTask;
use super::{AnyQueue, Enqueue, Queue};
use crate::error::{Error, Result};
use crate::name::Name;
use crate::store::Store;
use crate::task::{Declaration, Registry, UniqueUntil, arguments_key, partition_name};

/// A task that is known by name, and the arguments for it.
pub(super) struct Named {
    task: String,
    arguments: Value,
    partition: Option<String>,
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
        Enqueue::of_draft(
            self.clone(),
            Draft::of_named(Named { task: task.into(), arguments, partition: None }),
        )
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
        let linked = Registry::find(&self.task)?;
        let declaration = match linked {
            Some(definition) => Declaration::from(definition),
            None => declared(store, &self.task).await?,
        };
        declaration.check(&arguments)?;
        let payload = serde_json::to_vec(&Value::Object(arguments)).map_err(|source| Error::Encode {
            what: format!("the arguments of task {}", self.task),
            source,
        })?;
        match (linked, self.partition) {
            (Some(definition), None) => Calling::of_definition(definition)?.with_payload(definition, payload),
            (None, partition) => {
                let partition = partition_of(&declaration, partition)?;
                let unique = unique_of(&declaration, &payload)?;
                Ok(Calling { partition, unique, payload, ..of_declared(declaration)? })
            }
            (Some(_), Some(given)) => Err(Error::Invalid {
                what: format!("partition of task {}", self.task),
                given: format!("{given:?}"),
                accepted:
                    "no call of .partition(..): this program links the task, which makes it of its arguments"
                        .into(),
            }),
        }
    }

    pub(super) fn task(&self) -> &str {
        &self.task
    }

    /// Names the partition, which only a program that links the task could work out.
    pub(super) fn set_partition(&mut self, partition: String) {
        self.partition = Some(partition);
    }
}

/// The partition of a call whose task is not linked here; empty where the task has none.
fn partition_of(declaration: &Declaration, given: Option<String>) -> Result<String> {
    let what = || format!("partition of task {}", declaration.name);
    match given {
        None if declaration.partitioned => Err(Error::Invalid {
            what: what(),
            given: "none".into(),
            accepted:
                "a call of .partition(\"…\"): the task has partition_by, and this program does not link it"
                    .into(),
        }),
        None => Ok(String::new()),
        Some(_) if !declaration.partitioned => Err(Error::Invalid {
            what: what(),
            given: "one of its own".into(),
            accepted: "no call of .partition(..): the task has no partition_by".into(),
        }),
        Some(given) => partition_name(what, given),
    }
}

/// What the task says of the uniqueness of a call. All arguments make a key here, too; an expression needs the task.
fn unique_of(declaration: &Declaration, payload: &[u8]) -> Result<OfTask> {
    let Some(unique) = &declaration.unique else { return Ok(OfTask::Any) };
    let until = if unique.until_start { UniqueUntil::Start } else { UniqueUntil::Finish };
    if !unique.args {
        return Ok(OfTask::Unlinked(until));
    }
    Ok(OfTask::Key(arguments_key(&declaration.name, payload)?, until))
}

/// What the store knows of a task that is not linked here.
fn of_declared(declaration: Declaration) -> Result<Calling> {
    if let Some(argument) = declaration.not_built.into_iter().next() {
        return Err(Error::NotBuilt { task: declaration.name, argument });
    }
    Ok(Calling {
        task: Name::new("task", &declaration.name)?,
        queue: Name::new("queue", &declaration.queue)?,
        any_queue: declaration.any_queue,
        priority: declaration.priority,
        expires: declaration.expires_ms.map(Duration::from_millis),
        partition: String::new(),
        max_pending_per_partition: declaration.max_pending_per_partition,
        unique: OfTask::Any,
        payload: Vec::new(),
    })
}
