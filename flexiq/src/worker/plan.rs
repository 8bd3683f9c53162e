//! What a worker serves, settled before it starts: everything that is wrong is found here, at once.

use std::collections::HashMap;
use std::num::NonZero;
use std::time::Duration;

use super::slots::slot_of;
use crate::error::{Error, Result};
use crate::name::Name;
use crate::policy;
use crate::store::{Store, TaskCounts};
use crate::task::{Kind, Registry, States, TaskDefinition};

/// What a worker serves.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) tasks: Vec<Task>,
    pub(super) queues: Vec<Served>,
    /// Whether a queue is asked only when those before it have left room.
    pub(super) is_strict: bool,
    pub(super) slots: [u32; 2],
    pub(super) lease: Duration,
    pub(super) grace: Duration,
    pub(super) states: States,
    by_name: HashMap<Name, usize>,
}

/// A task that a worker serves.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) name: Name,
    pub(super) definition: &'static TaskDefinition,
}

/// A queue that a worker serves, and which of its tasks may stand in it.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) name: Name,
    pub(super) tasks: Vec<usize>,
    /// Its part of the room that several queues want.
    pub(super) weight: u32,
}

/// What the builder was told.
#[derive(Debug)]
pub(super) struct Wishes {
    pub(super) registry: Registry,
    pub(super) queues: Option<Vec<String>>,
    pub(super) weights: Vec<(String, u32)>,
    pub(super) is_strict: bool,
    pub(super) workers: Option<u32>,
    pub(super) async_concurrency: Option<u32>,
    pub(super) lease: Duration,
    pub(super) grace: Duration,
    pub(super) states: States,
}

/// A queue's weight at most.
const MOST_WEIGHT: u32 = 1_000;

impl Plan {
    /// Settles what a worker serves.
    pub(super) async fn settle(wishes: Wishes, store: &dyn Store) -> Result<Self> {
        let linked: Vec<_> = wishes.registry.iter().collect();
        if linked.is_empty() {
            return Err(Error::NothingToServe {
                reason:
                    "no task is linked into this program; if your tasks are in a crate of their own, write \
                         `use your_tasks as _;` in the worker's main file"
                        .into(),
            });
        }
        let pending = Pending::of(&linked, store).await?;
        let names = queue_names(wishes.queues.as_deref(), &linked, &pending, store).await?;
        let tasks: Vec<_> = linked
            .into_iter()
            .filter(|task| names.iter().any(|name| pending.may_stand(task, name)))
            .map(|definition| Task { name: Name::from_static(definition.name), definition })
            .collect();
        if tasks.is_empty() {
            return Err(Error::NothingToServe {
                reason: format!("no linked task has its home in {}", names.join(", ")),
            });
        }
        check_built(&tasks)?;
        check_states(&tasks, &wishes.states)?;
        let weights = weights(&wishes, &names)?;
        let served =
            |(name, weight): (Name, u32)| Served { tasks: tasks_of(&name, &tasks, &pending), name, weight };
        let queues = names.into_iter().zip(weights).map(served).collect();
        let slots = slots(&wishes, &tasks)?;
        let by_name = tasks.iter().enumerate().map(|(index, task)| (task.name.clone(), index)).collect();
        let Wishes { is_strict, lease, grace, states, .. } = wishes;
        Ok(Self { tasks, queues, is_strict, slots, lease, grace, states, by_name })
    }

    /// The index of a task.
    pub(super) fn task(&self, name: &Name) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// How often leases are renewed: three times and a bit in the life of one.
    pub(super) fn beat(&self) -> Duration {
        self.lease.mul_f64(0.3)
    }
}

/// Where jobs of the linked tasks lie, by queue and task: after a deploy that changed a task's home, or with `any_queue`,
/// also where none has its home.
struct Pending(Vec<(Name, Name)>);

impl Pending {
    async fn of(linked: &[&'static TaskDefinition], store: &dyn Store) -> Result<Self> {
        let is_linked = |counts: &&TaskCounts| linked.iter().any(|task| task.name == counts.task);
        let counts = store.counts().await?;
        let lying =
            counts.tasks.iter().filter(|counts| counts.pending() + counts.running > 0).filter(is_linked);
        let names =
            lying.map(|counts| Ok((Name::new("queue", &counts.queue)?, Name::new("task", &counts.task)?)));
        Ok(Self(names.collect::<Result<_>>()?))
    }

    /// Whether jobs of a task may be found in a queue.
    fn may_stand(&self, task: &TaskDefinition, queue: &Name) -> bool {
        let lies = |(there, name): &(Name, Name)| there == queue && name.as_str() == task.name;
        task.any_queue || task.queue == queue.as_str() || self.0.iter().any(lies)
    }
}

/// The queues to serve: those that were named, or the homes of all linked tasks and where else their jobs lie.
async fn queue_names(
    wished: Option<&[String]>,
    linked: &[&'static TaskDefinition],
    pending: &Pending,
    store: &dyn Store,
) -> Result<Vec<Name>> {
    let mut homes: Vec<_> = linked.iter().map(|task| Name::from_static(task.queue)).collect();
    homes.extend(pending.0.iter().map(|(queue, _)| queue.clone()));
    homes.sort();
    homes.dedup();
    let Some(wished) = wished else { return Ok(homes) };
    let mut known = homes;
    known.extend(store.queues().await?);
    let mut names = Vec::new();
    for wish in wished {
        let name = Name::new("queue", wish)?;
        if !known.contains(&name) {
            let nearest = policy::nearest(wish, known.iter().map(Name::as_str)).map(str::to_owned);
            return Err(Error::Unknown { what: "queue", name: wish.clone(), nearest });
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Err(Error::NothingToServe {
            reason: "`.queues([])` names no queue; leave it out to serve the homes of all linked tasks"
                .into(),
        });
    }
    Ok(names)
}

fn tasks_of(queue: &Name, tasks: &[Task], pending: &Pending) -> Vec<usize> {
    let may_stand = |task: &Task| pending.may_stand(task.definition, queue);
    tasks.iter().enumerate().filter(|(_, task)| may_stand(task)).map(|(index, _)| index).collect()
}

/// The weight of each queue.
fn weights(wishes: &Wishes, queues: &[Name]) -> Result<Vec<u32>> {
    let invalid = |what: String, given: String, accepted: &str| {
        Err(Error::Invalid { what, given, accepted: accepted.into() })
    };
    if wishes.is_strict && wishes.queues.is_none() {
        return invalid(
            "strict_order".into(),
            "without an order".into(),
            "beside .queues([..]), which gives the order",
        );
    }
    if wishes.is_strict && !wishes.weights.is_empty() {
        return invalid("strict_order".into(), "beside .weight(..)".into(), "one of the two");
    }
    let mut weights = vec![1; queues.len()];
    for (queue, weight) in &wishes.weights {
        if !(1..=MOST_WEIGHT).contains(weight) {
            return invalid(format!("weight of queue {queue}"), weight.to_string(), "1 to 1000");
        }
        let Some(index) = queues.iter().position(|name| name.as_str() == queue) else {
            let nearest = policy::nearest(queue, queues.iter().map(Name::as_str)).map(str::to_owned);
            return Err(Error::Unknown { what: "queue", name: queue.clone(), nearest });
        };
        weights[index] = *weight;
    }
    Ok(weights)
}

/// An argument whose engine is not part of this version is refused, never ignored.
fn check_built(tasks: &[Task]) -> Result<()> {
    for task in tasks {
        if let Some(argument) = task.definition.not_built().first() {
            return Err(Error::NotBuilt { task: task.name.to_string(), argument: (*argument).into() });
        }
    }
    Ok(())
}

fn check_states(tasks: &[Task], states: &States) -> Result<()> {
    let missing: Vec<_> = tasks.iter().flat_map(|task| task.definition.missing_states(states)).collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::MissingState { missing, given: states.type_names() }) }
}

/// Slots by kind: plain ones default to the CPU count, async ones to 100.
fn slots(wishes: &Wishes, tasks: &[Task]) -> Result<[u32; 2]> {
    if wishes.async_concurrency == Some(0) {
        return Err(Error::Invalid {
            what: "async_concurrency".into(),
            given: "0".into(),
            accepted: "1 or more; to serve no async task, name the others with .tasks([..])".into(),
        });
    }
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut slots = [0; 2];
    for (kind, given, default, call) in [
        (Kind::Async, wishes.async_concurrency, 100, "async_concurrency"),
        (
            Kind::Plain,
            wishes.workers.filter(|&count| count > 0),
            u32::try_from(cpus).unwrap_or(u32::MAX),
            "workers",
        ),
    ] {
        let is_used = tasks.iter().any(|task| task.definition.kind == kind);
        if given.is_some() && !is_used {
            let whose = if kind == Kind::Async { "an async fn" } else { "a plain fn" };
            tracing::warn!("{call} is set, but no task that this worker serves is {whose}");
        }
        slots[slot_of(kind)] = given.unwrap_or(default);
    }
    Ok(slots)
}
