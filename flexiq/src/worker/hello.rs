//! What a worker says of itself when it registers: whom it serves, and what its tasks declare.

use super::builder::variable;
use super::plan::{Plan, Task};
use crate::error::{Error, Result};
use crate::name::Name;
use crate::policy::CronSchedule;
use crate::queue::Queue;
use crate::store::{Declared, Hello, Limits, Outset, Schedule, WorkerId};
use crate::task::{Cron, Declaration, PerPartition, TaskDefinition};

/// The arguments of a cron's jobs: nobody gives them any, so each has its default.
const NO_ARGUMENTS: &str = "{}";

/// What a worker says when it registers.
pub(super) fn hello(id: WorkerId, plan: &Plan, handle: &Queue) -> Result<Hello> {
    Ok(Hello {
        worker: id,
        label: format!("{}:{}", host(), std::process::id()),
        lease: plan.lease,
        queues: plan
            .queues
            .iter()
            .map(|queue| (queue.name.clone(), handle.declared_limits(&queue.name)))
            .collect(),
        tasks: plan.tasks.iter().map(declared).collect::<Result<_>>()?,
    })
}

fn declared(Task { name, definition }: &Task) -> Result<Declared> {
    let json = serde_json::to_string(&Declaration::from(*definition))
        .map_err(|source| Error::Encode { what: format!("the declaration of task {name}"), source })?;
    Ok(Declared {
        task: name.clone(),
        queue: Name::from_static(definition.queue),
        json,
        limits: Limits {
            max_concurrent: definition.max_concurrent,
            rates: definition.rates.to_vec(),
            max_pending: None,
        },
        per_partition: definition.partition.map(limits_of_each).unwrap_or_default(),
        schedule: definition.cron.map(|cron| schedule(definition, cron)).transpose()?,
    })
}

fn limits_of_each(partition: PerPartition) -> Limits {
    let PerPartition { max_concurrent, rates, max_pending, .. } = partition;
    Limits { max_concurrent, rates: rates.to_vec(), max_pending }
}

/// What the cron of a task enqueues.
fn schedule(definition: &TaskDefinition, cron: Cron) -> Result<Schedule> {
    Ok(Schedule {
        cron: CronSchedule::new(cron.pattern, cron.timezone)?,
        catch_up: cron.catch_up,
        task: Name::from_static(definition.name),
        partition: definition.partition_key(NO_ARGUMENTS.as_bytes())?.unwrap_or_default(),
        max_pending_per_partition: definition.partition.and_then(|each| each.max_pending),
        arguments: NO_ARGUMENTS.into(),
        priority: definition.priority,
        expires: definition.expires,
        outset: Outset::default(),
    })
}

/// The host's name, as far as it is known without asking the system: for people.
fn host() -> String {
    variable("HOSTNAME")
        .or_else(|| std::fs::read_to_string("/etc/hostname").ok())
        .map_or_else(|| "localhost".into(), |name| name.trim().to_owned())
}
