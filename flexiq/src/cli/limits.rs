//! limits, pause and resume: what holds, and changing it at runtime.

use serde_json::{Value, json};

use super::args::{LimitChange, Target};
use super::columns::{Columns, Head};
use super::failure::Failure;
use super::json;
use super::report::Report;
use crate::error::Result;
use crate::policy::Rate;
use crate::queue::Queue;
use crate::store::Scope;

pub(super) async fn list(queue: &Queue) -> Result<Report, Failure> {
    let standings = queue.limits().await?;
    let mut columns = Columns::new(&[
        Head::Left("OF"),
        Head::Left("MAX CONCURRENT"),
        Head::Left("RATE"),
        Head::Left("MAX PENDING"),
        Head::Left("PAUSED"),
    ]);
    for standing in &standings {
        let (set, declared) = (&standing.overrides, &standing.declared);
        let rates = |rates: &[Rate]| rates.iter().map(Rate::to_string).collect::<Vec<_>>().join(", ");
        let some = |text: String| (!text.is_empty()).then_some(text);
        columns.row([
            of(&standing.scope),
            value(number(set.max_concurrent), number(declared.max_concurrent)),
            value(
                set.rates.as_deref().map(|set| some(rates(set)).unwrap_or_else(|| "none".into())),
                some(rates(&declared.rates)),
            ),
            value(number(set.max_pending), number(declared.max_pending)),
            if standing.is_paused { "paused".into() } else { "-".into() },
        ]);
    }
    let list: Vec<Value> = standings.iter().map(json::standing).collect();
    Ok(Report::new(columns.or("nothing is limited or paused"), json!({ "limits": list })))
}

pub(super) async fn change(queue: &Queue, change: LimitChange) -> Result<Report, Failure> {
    match change {
        LimitChange::Set { target, max_concurrent, rate, max_pending } => {
            let target = target.checked(max_pending.is_some())?;
            if let Some(jobs) = max_concurrent {
                target.set_concurrency(queue, jobs).await?;
            }
            if let Some(rate) = rate {
                target.set_rate(queue, &rate).await?;
            }
            if let (Some(jobs), On::Queue(name)) = (max_pending, &target) {
                queue.set_queue_max_pending(name, jobs).await?;
            }
            list(queue).await
        }
        LimitChange::Clear { target, max_concurrent, rate, max_pending } => {
            let target = target.checked(max_pending)?;
            if max_concurrent {
                target.clear_concurrency(queue).await?;
            }
            if rate {
                target.clear_rate(queue).await?;
            }
            if let (true, On::Queue(name)) = (max_pending, &target) {
                queue.clear_queue_max_pending(name).await?;
            }
            list(queue).await
        }
    }
}

pub(super) async fn pause(queue: &Queue, target: Target) -> Result<Report, Failure> {
    let target = target.checked(false)?;
    match &target {
        On::Queue(name) => queue.pause_queue(name).await?,
        On::Task(task) => queue.pause_task(task).await?,
        On::Partition(task, partition) => queue.pause_partition(task, partition).await?,
    }
    Ok(Report::new(
        format!("{} is paused", target.words()),
        json!({ "of": target.json(), "is_paused": true }),
    ))
}

pub(super) async fn resume(queue: &Queue, target: Target) -> Result<Report, Failure> {
    let target = target.checked(false)?;
    match &target {
        On::Queue(name) => queue.resume_queue(name).await?,
        On::Task(task) => queue.resume_task(task).await?,
        On::Partition(task, partition) => queue.resume_partition(task, partition).await?,
    }
    Ok(Report::new(
        format!("{} is not paused", target.words()),
        json!({ "of": target.json(), "is_paused": false }),
    ))
}

/// What is changed.
enum On {
    Queue(String),
    Task(String),
    Partition(String, String),
}

impl Target {
    /// What is meant; a limit of pending jobs is for queues alone.
    fn checked(self, has_max_pending: bool) -> Result<On, Failure> {
        let target = match self {
            Self { queue: Some(queue), .. } => return Ok(On::Queue(queue)),
            Self { task: Some(task), partition: Some(partition), .. } => On::Partition(task, partition),
            Self { task: Some(task), .. } => On::Task(task),
            Self { .. } => return Err(Failure::Usage("name a queue by --queue or a task by --task".into())),
        };
        if has_max_pending {
            return Err(Failure::Usage(format!(
                "--max-pending is for a --queue, and was given for {}: its task declares max_pending_per_partition",
                target.words()
            )));
        }
        Ok(target)
    }
}

impl On {
    async fn set_concurrency(&self, queue: &Queue, jobs: u32) -> Result<()> {
        match self {
            Self::Queue(name) => queue.set_queue_concurrency(name, jobs).await,
            Self::Task(task) => queue.set_task_concurrency(task, jobs).await,
            Self::Partition(task, partition) => queue.set_partition_concurrency(task, partition, jobs).await,
        }
    }

    async fn clear_concurrency(&self, queue: &Queue) -> Result<()> {
        match self {
            Self::Queue(name) => queue.clear_queue_concurrency(name).await,
            Self::Task(task) => queue.clear_task_concurrency(task).await,
            Self::Partition(task, partition) => queue.clear_partition_concurrency(task, partition).await,
        }
    }

    async fn set_rate(&self, queue: &Queue, rate: &str) -> Result<()> {
        match self {
            Self::Queue(name) => queue.set_queue_rate_limit(name, rate).await,
            Self::Task(task) => queue.set_task_rate_limit(task, rate).await,
            Self::Partition(task, partition) => queue.set_partition_rate_limit(task, partition, rate).await,
        }
    }

    async fn clear_rate(&self, queue: &Queue) -> Result<()> {
        match self {
            Self::Queue(name) => queue.clear_queue_rate_limit(name).await,
            Self::Task(task) => queue.clear_task_rate_limit(task).await,
            Self::Partition(task, partition) => queue.clear_partition_rate_limit(task, partition).await,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Queue(queue) => format!("queue {queue}"),
            Self::Task(task) => format!("task {task}"),
            Self::Partition(task, partition) => format!("partition {partition:?} of task {task}"),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Queue(queue) => json!({ "kind": "queue", "queue": queue }),
            Self::Task(task) => json!({ "kind": "task", "task": task }),
            Self::Partition(task, partition) => {
                json!({ "kind": "partition", "task": task, "partition": partition })
            }
        }
    }
}

fn of(scope: &Scope) -> String {
    match scope {
        Scope::Queue(queue) => format!("queue {queue}"),
        Scope::Task(task) => format!("task {task}"),
        Scope::EachPartition(task) => format!("each partition of task {task}"),
        Scope::Partition(task, partition) => format!("partition {partition:?} of task {task}"),
    }
}

fn number(limit: Option<impl ToString>) -> Option<String> {
    limit.map(|limit| limit.to_string())
}

/// What holds, and if it was set at runtime, what is declared beneath.
fn value(set: Option<String>, declared: Option<String>) -> String {
    match (set, declared) {
        (None, None) => "-".into(),
        (None, Some(declared)) => declared,
        (Some(set), None) => format!("{set} (set)"),
        (Some(set), Some(declared)) => format!("{set} (set; declared {declared})"),
    }
}
