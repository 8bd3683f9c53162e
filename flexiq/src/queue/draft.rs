//! One call on its way to becoming a stored job: what the caller set, checked, with the task's own values beneath.

use std::time::Duration;

use super::by_name::Named;
use super::uniqueness::{OfTask, Uniqueness};
use crate::error::{Error, Result};
use crate::job::{Due, JobId};
use crate::name::Name;
use crate::store::{NewJob, Outset, Payload, Store};
use crate::task::{Call, TaskDefinition};

/// The codec byte of JSON.
const JSON: u8 = 0;

/// One call on its way to becoming a stored job.
pub(super) struct Draft {
    target: Target,
    id: JobId,
    /// Whether the caller chose the id.
    is_given: bool,
    queue: Option<Name>,
    priority: Option<i8>,
    due: Due,
    expires: Option<Duration>,
    outset: Outset,
    uniqueness: Uniqueness,
    patience: Option<Duration>,
    /// The first thing that was wrong: told when the draft is stored, where there is a result to tell it in.
    error: Option<Error>,
}

/// The task that is called, and with what.
enum Target {
    /// A task whose definition is linked.
    Defined(Call),
    /// A task that is known by name alone.
    Named(Named),
}

/// A job that is ready to be stored in a queue.
pub(super) struct Ready {
    pub(super) queue: Name,
    pub(super) job: NewJob,
    /// How long it waits for room.
    pub(super) patience: Option<Duration>,
}

/// What a task says of all its calls.
pub(super) struct Calling {
    pub(super) task: Name,
    pub(super) queue: Name,
    pub(super) any_queue: bool,
    pub(super) priority: i8,
    pub(super) expires: Option<Duration>,
    /// Empty where the task has none.
    pub(super) partition: String,
    pub(super) max_pending_per_partition: Option<u64>,
    pub(super) unique: OfTask,
    pub(super) payload: Vec<u8>,
}

impl Draft {
    pub(super) fn of_call(call: Call) -> Self {
        Self::new(Target::Defined(call))
    }

    pub(super) fn of_named(named: Named) -> Self {
        Self::new(Target::Named(named))
    }

    fn new(target: Target) -> Self {
        Self {
            target,
            id: JobId::new(),
            is_given: false,
            queue: None,
            priority: None,
            due: Due::NOW,
            expires: None,
            outset: Outset::default(),
            uniqueness: Uniqueness::default(),
            patience: None,
            error: None,
        }
    }

    pub(super) fn set_id(&mut self, id: JobId) {
        (self.id, self.is_given) = (id, true);
    }

    pub(super) fn set_due(&mut self, due: Due) {
        self.due = due;
    }

    pub(super) fn set_queue(&mut self, queue: &str) {
        match Name::new("queue", queue) {
            Ok(name) => self.queue = Some(name),
            Err(error) => self.refuse(error),
        }
    }

    pub(super) fn set_partition(&mut self, partition: String) {
        match &mut self.target {
            Target::Named(named) => named.set_partition(partition),
            Target::Defined(call) => {
                let error = Error::Invalid {
                    what: format!("partition of task {}", call.definition().name),
                    given: format!("{partition:?}"),
                    accepted: "no call of .partition(..): the task makes it of its arguments".into(),
                };
                self.refuse(error);
            }
        }
    }

    pub(super) fn set_priority(&mut self, priority: i8) {
        if (-100..=100).contains(&priority) {
            self.priority = Some(priority);
        } else {
            self.refuse(Error::Invalid {
                what: "priority".into(),
                given: priority.to_string(),
                accepted: "-100 to 100, higher first".into(),
            });
        }
    }

    pub(super) fn set_expires(&mut self, expires: Duration) {
        self.expires = self.positive("expires", expires);
    }

    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.outset.timeout = self.positive("timeout", timeout);
    }

    pub(super) fn set_max_retries(&mut self, max_retries: u32) {
        self.outset.max_retries = Some(max_retries);
    }

    pub(super) fn set_result_ttl(&mut self, result_ttl: Duration) {
        self.outset.result_ttl = self.positive("result_ttl", result_ttl);
    }

    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.patience = Some(patience);
    }

    pub(super) fn uniqueness(&mut self) -> &mut Uniqueness {
        &mut self.uniqueness
    }

    /// Sets the key that is made for the task of this name.
    pub(super) fn set_unique_key(&mut self, make: impl FnOnce(&str) -> Result<String>) {
        let task = match &self.target {
            Target::Defined(call) => call.definition().name,
            Target::Named(named) => named.task(),
        };
        match make(task) {
            Ok(key) => self.uniqueness.key = Some(key),
            Err(error) => self.refuse(error),
        }
    }

    pub(super) fn set_unique_for(&mut self, time: Duration) {
        self.uniqueness.at_least = self.positive("unique_for", time);
    }

    pub(super) fn set_debounce(&mut self, quiet: Duration) {
        self.uniqueness.debounce = self.positive("debounce", quiet);
    }

    pub(super) fn set_throttle(&mut self, time: Duration) {
        self.uniqueness.throttle = self.positive("throttle", time);
    }

    fn positive(&mut self, what: &str, duration: Duration) -> Option<Duration> {
        if duration.is_zero() {
            self.refuse(Error::Invalid {
                what: what.into(),
                given: "0 s".into(),
                accepted: "a duration above zero; leave the call out for the task's own value".into(),
            });
        }
        Some(duration)
    }

    fn refuse(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Checks everything and fills in what the task says.
    pub(super) async fn resolve(self, store: &dyn Store, max_payload: usize) -> Result<Ready> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let calling = match self.target {
            Target::Defined(call) => Calling::of_call(call)?,
            Target::Named(named) => named.resolve(store).await?,
        };
        let queue = match self.queue {
            Some(other) if other != calling.queue && !calling.any_queue => {
                return Err(Error::Invalid {
                    what: format!("queue of task {}", calling.task),
                    given: other.to_string(),
                    accepted: format!(
                        "{}, its home queue, unless it has #[flexiq::task(any_queue)]",
                        calling.queue
                    ),
                });
            }
            Some(other) => other,
            None => calling.queue,
        };
        if calling.payload.len() > max_payload {
            return Err(Error::PayloadTooLarge {
                task: calling.task.to_string(),
                size: calling.payload.len(),
                limit: max_payload,
            });
        }
        let (unique, due) =
            self.uniqueness.resolve(&calling.task, &calling.partition, calling.unique, self.due)?;
        let job = NewJob {
            id: self.id,
            is_given: self.is_given,
            task: calling.task,
            partition: calling.partition,
            max_pending_per_partition: calling.max_pending_per_partition,
            payload: Payload { codec: JSON, bytes: calling.payload },
            priority: self.priority.unwrap_or(calling.priority),
            due,
            expires: self.expires.or(calling.expires),
            outset: self.outset,
            unique,
        };
        Ok(Ready { queue, job, patience: self.patience })
    }
}

impl Calling {
    fn of_call(call: Call) -> Result<Self> {
        let definition = call.definition();
        let calling = Self::of_definition(definition)?;
        calling.with_payload(definition, call.finish()?)
    }

    /// What a linked definition says of its calls, without a payload.
    pub(super) fn of_definition(definition: &'static TaskDefinition) -> Result<Self> {
        if let Some(argument) = definition.not_built().first() {
            return Err(Error::NotBuilt { task: definition.name.into(), argument: (*argument).into() });
        }
        Ok(Self {
            task: Name::from_static(definition.name),
            queue: Name::from_static(definition.queue),
            any_queue: definition.any_queue,
            priority: definition.priority,
            expires: definition.expires,
            partition: String::new(),
            max_pending_per_partition: definition.partition.and_then(|each| each.max_pending),
            unique: OfTask::Any,
            payload: Vec::new(),
        })
    }

    /// Fills in a payload, the partition that it belongs to, and its unique key.
    pub(super) fn with_payload(self, definition: &'static TaskDefinition, payload: Vec<u8>) -> Result<Self> {
        let partition = definition.partition_key(&payload)?.unwrap_or_default();
        let unique = match (definition.unique_key(&payload)?, definition.unique) {
            (Some(key), Some(unique)) => OfTask::Key(key, unique.until),
            _ => OfTask::Any,
        };
        Ok(Self { partition, unique, payload, ..self })
    }
}
