//! The gates of queues, tasks and partitions: pause, hold, cap, rates. All are checked, then all are charged.

use std::collections::{BTreeMap, BTreeSet};

use flexiq::internals::{Change, Limits, Name, Overrides, Scope, Standing, Timestamp, longest};

use super::meter::Meter;
use super::record::Record;
use super::world::{Worker, World};

/// What was set at runtime, and the starts that rates count.
#[derive(Debug, Default)]
pub(super) struct Gates {
    set: BTreeMap<Scope, Set>,
    /// By queue, for its own gate and for the gates of each task and partition in it.
    meters: BTreeMap<(Name, Scope), Meter>,
    /// By queue and scope: until when a run has said that nothing should start.
    holds: BTreeMap<(Name, Scope), Timestamp>,
}

/// What was set at runtime for a task or queue.
#[derive(Clone, Debug, Default)]
struct Set {
    overrides: Overrides,
    is_paused: bool,
}

impl Gates {
    pub(super) fn change(&mut self, scope: Scope, change: Change) {
        if change == Change::Paused(false) {
            self.holds.retain(|(_, held), _| *held != scope);
        }
        let set = self.set.entry(scope).or_default();
        match change {
            Change::MaxConcurrent(jobs) => set.overrides.max_concurrent = jobs,
            Change::Rates(rates) => set.overrides.rates = rates,
            Change::MaxPending(jobs) => set.overrides.max_pending = jobs,
            Change::Paused(is_paused) => set.is_paused = is_paused,
        }
    }

    /// The pending jobs that were set at runtime.
    pub(super) fn max_pending(&self, scope: Scope) -> Option<u64> {
        self.set.get(&scope)?.overrides.max_pending
    }

    /// Holds what a run said. A hold never ends an earlier one sooner.
    pub(super) fn hold(&mut self, queue: &Name, scope: Scope, until: Timestamp) {
        let held = self.holds.entry((queue.clone(), scope)).or_insert(until);
        *held = until.max(*held);
    }

    /// Forgets holds of a queue that are over: also when the clock goes back they hold nothing again.
    pub(super) fn forget_holds(&mut self, now: Timestamp, queue: &Name) {
        self.holds.retain(|(of, _), until| of != queue || *until > now);
    }

    pub(super) fn held_until(&self, queue: &Name, scope: &Scope) -> Option<Timestamp> {
        self.holds.get(&(queue.clone(), scope.clone())).copied()
    }

    /// What a gate has let through, if it ever had a rate.
    pub(super) fn meter(&self, queue: &Name, scope: &Scope) -> &Meter {
        const NEW: &Meter = &Meter::new();
        self.meters.get(&(queue.clone(), scope.clone())).unwrap_or(NEW)
    }
}

/// Forgets starts of partitions that have left every window, at their time and now.
pub(super) fn forget_over(world: &mut World, now: Timestamp) {
    let scopes: Vec<(Name, Scope)> = world.gates.meters.keys().cloned().collect();
    for (queue, scope) in scopes.into_iter().filter(|(_, scope)| matches!(scope, Scope::Partition(..))) {
        let longest = longest(&standing(world, scope.clone()).limits().rates);
        let meter = world.gates.meters.get_mut(&(queue, scope)).expect("it is there");
        meter.forget_over(now, longest);
    }
}

/// What holds for each task and queue that has a limit or a pause.
pub(super) fn limits(world: &World) -> Vec<Standing> {
    let mut scopes: BTreeSet<Scope> = world.gates.set.keys().cloned().collect();
    for worker in world.workers.values() {
        scopes.extend(worker.hello.queues.iter().map(|(queue, _)| Scope::Queue(queue.clone())));
        scopes.extend(worker.hello.tasks.iter().map(|task| Scope::Task(task.task.clone())));
        scopes.extend(worker.hello.tasks.iter().map(|task| Scope::EachPartition(task.task.clone())));
    }
    let is_something = |standing: &Standing| {
        standing.is_paused
            || standing.overrides != Overrides::default()
            // What holds for each partition is told once.
            || standing.declared != Limits::default() && !matches!(standing.scope, Scope::Partition(..))
    };
    scopes.into_iter().map(|scope| standing(world, scope)).filter(is_something).collect()
}

pub(super) fn standing(world: &World, scope: Scope) -> Standing {
    let Set { overrides, is_paused } = world.gates.set.get(&scope).cloned().unwrap_or_default();
    Standing { declared: declared(world, &scope), scope, overrides, is_paused }
}

/// What the youngest living worker that links the task, or serves the queue, declares. Where none lives, the youngest
/// that was found silent is asked: it may only have been cut off.
fn declared(world: &World, scope: &Scope) -> Limits {
    let says = |worker: &Worker| match scope {
        Scope::Queue(name) => {
            worker.hello.queues.iter().find(|(queue, _)| queue == name).map(|(_, limits)| limits.clone())
        }
        Scope::Task(name) => {
            worker.hello.tasks.iter().find(|task| task.task == *name).map(|task| task.limits.clone())
        }
        Scope::EachPartition(name) | Scope::Partition(name, _) => {
            worker.hello.tasks.iter().find(|task| task.task == *name).map(|task| task.per_partition.clone())
        }
    };
    let all = world.workers.values().filter_map(|worker| Some((worker.is_alive, worker.born, says(worker)?)));
    all.max_by_key(|(is_alive, born, _)| (*is_alive, *born)).map(|(.., limits)| limits).unwrap_or_default()
}

/// The gates of a job: its queue's, its task's, and its partition's if it has one.
pub(super) fn gates_of(queue: &Name, task: &Name, partition: &str) -> Vec<Scope> {
    let mut scopes = vec![Scope::Queue(queue.clone()), Scope::Task(task.clone())];
    if !partition.is_empty() {
        scopes.push(Scope::Partition(task.clone(), partition.into()));
    }
    scopes
}

/// Whether one more start goes through this gate.
fn is_open(world: &World, now: Timestamp, queue: &Name, scope: Scope) -> bool {
    let standing = standing(world, scope);
    let Limits { max_concurrent, rates, .. } = standing.limits();
    let meter = world.gates.meter(queue, &standing.scope);
    !standing.is_paused
        && world.gates.held_until(queue, &standing.scope).is_none_or(|until| until <= now)
        && max_concurrent.is_none_or(|cap| leased(world, queue, &standing.scope).count() < cap as usize)
        && rates.iter().all(|rate| meter.admit(rate, 1, now).starts > 0)
}

/// How many of these starts this gate admits.
pub(super) fn admitted(world: &World, now: Timestamp, queue: &Name, scope: Scope, jobs: u64) -> u64 {
    if jobs == 0 || !is_open(world, now, queue, scope.clone()) {
        return 0;
    }
    let Limits { max_concurrent, rates, .. } = standing(world, scope.clone()).limits();
    let meter = world.gates.meter(queue, &scope);
    let wanted = u32::try_from(jobs).expect("the model holds few jobs");
    let of_cap = max_concurrent.map(|cap| u64::from(cap) - leased(world, queue, &scope).count() as u64);
    let of_rates = rates.iter().map(|rate| u64::from(meter.admit(rate, wanted, now).starts));
    of_rates.chain(of_cap).fold(jobs, u64::min)
}

/// Whether the gates of this task and of its queue let one more start.
pub(super) fn is_task_open(world: &World, now: Timestamp, queue: &Name, task: &Name) -> bool {
    gates_of(queue, task, "").into_iter().all(|scope| is_open(world, now, queue, scope))
}

/// Whether the gate of this partition lets one more start, if it is one.
pub(super) fn is_partition_open(
    world: &World,
    now: Timestamp,
    queue: &Name,
    task: &Name,
    partition: &str,
) -> bool {
    partition.is_empty() || is_open(world, now, queue, Scope::Partition(task.clone(), partition.into()))
}

/// Counts one start, which every gate has let through. A gate without a rate counts none.
pub(super) fn charge(world: &mut World, now: Timestamp, queue: &Name, task: &Name, partition: &str) {
    let claim = world.starters;
    for scope in gates_of(queue, task, partition) {
        let standing = standing(world, scope);
        let rates = standing.limits().rates;
        if !rates.is_empty() {
            let meter = world.gates.meters.entry((queue.clone(), standing.scope)).or_default();
            meter.charge(claim, &rates, now);
        }
    }
}

/// Whether a cap counts the leases of this task and partition in this queue.
pub(super) fn is_capped(world: &World, queue: &Name, task: &Name, partition: &str) -> bool {
    let has_cap = |scope| standing(world, scope).limits().max_concurrent.is_some();
    gates_of(queue, task, partition).into_iter().any(has_cap)
}

/// Jobs of a queue, or of a task or partition in it, that hold a lease.
pub(super) fn leased<'a>(
    world: &'a World,
    queue: &'a Name,
    scope: &'a Scope,
) -> impl Iterator<Item = &'a Record> {
    let is_counted = move |record: &&Record| match scope {
        Scope::Queue(_) => true,
        Scope::Task(task) | Scope::EachPartition(task) => record.task == *task,
        Scope::Partition(task, partition) => record.task == *task && record.partition == *partition,
    };
    world.of_queue(queue).filter(|record| record.is_running()).filter(is_counted)
}

/// When time opens the gates that keep this task and partition waiting, if it does.
pub(super) fn opens_at(
    world: &World,
    now: Timestamp,
    queue: &Name,
    task: &Name,
    partition: &str,
) -> Option<Timestamp> {
    let mut opens_at = None;
    for scope in gates_of(queue, task, partition) {
        let held = world.gates.held_until(queue, &scope).filter(|&until| until > now);
        let meter = world.gates.meter(queue, &scope);
        let rates = standing(world, scope.clone()).limits().rates;
        let spent =
            rates.iter().map(|rate| meter.admit(rate, 1, now)).filter(|admission| admission.starts == 0);
        opens_at = spent.map(|admission| admission.opens_at).chain(held).chain(opens_at).max();
    }
    opens_at
}
