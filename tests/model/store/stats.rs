//! stats: the facts of the whole store, counted one by one.

use std::collections::BTreeSet;

use flexiq::State;
use flexiq::internals::{
    LEAST_HEADS_SEEN, Limits, Name, QueueFacts, SAMPLES_KEPT, Scope, Snapshot, StoredSample, TaskFacts,
    Timestamp, WorkerFacts,
};

use super::explain::shut_by;
use super::gates::{self, admitted, leased};
use super::read::counts;
use super::record::Record;
use super::world::{Worker, World};

/// A partition tells at most so many of its jobs that may start.
const MOST_OF_A_PARTITION: u64 = 1_000;

pub(super) fn stats(world: &World, now: Timestamp) -> Snapshot {
    let counts = counts(world).tasks;
    let tasks: Vec<TaskFacts> = counts.into_iter().map(|counts| task(world, now, counts)).collect();
    Snapshot {
        at: now,
        queues: world.queues.iter().map(|name| queue(world, now, name, &tasks)).collect(),
        tasks,
        workers: workers(world, now),
        homes: world.homes.clone().into_iter().collect(),
        standings: gates::limits(world),
        samples: world.samples.clone(),
        stale: 0,
    }
}

/// Keeps a sample and the one before, unless one was kept after the newest that was seen.
pub(super) fn keep_sample(world: &mut World, now: Timestamp, after: Option<Timestamp>, text: String) -> bool {
    let is_newest = world.samples.last().map(|sample| sample.at) == after;
    if is_newest {
        world.samples.push(StoredSample { at: now, text });
        let gone = world.samples.len().saturating_sub(SAMPLES_KEPT);
        world.samples.drain(..gone);
    }
    is_newest
}

fn queue(world: &World, now: Timestamp, queue: &Name, tasks: &[TaskFacts]) -> QueueFacts {
    let scope = Scope::Queue(queue.clone());
    let startable = tasks.iter().filter(|task| task.counts.queue == **queue).map(|task| task.startable).sum();
    QueueFacts {
        queue: queue.clone(),
        pending: world.of_queue(queue).filter(|record| record.state.is_pending()).count() as u64,
        running: leased(world, queue, &scope).count() as u64,
        startable: admitted(world, now, queue, scope.clone(), startable),
        shut_by: shut_by(world, now, queue, scope),
    }
}

fn task(world: &World, now: Timestamp, counts: flexiq::TaskCounts) -> TaskFacts {
    let name = |what, text: &str| Name::new(what, text).expect("it was a name");
    let (queue, task) = (name("queue", &counts.queue), name("task", &counts.task));
    let scope = Scope::Task(task.clone());
    let is_ready = |record: &&Record| record.task == task && record.state == State::Ready;
    let ready: Vec<&Record> = world.of_queue(&queue).filter(is_ready).collect();
    let in_partition = |partition: &str| ready.iter().filter(|it| it.partition == partition).count() as u64;
    let partitions: BTreeSet<&str> = ready.iter().map(|record| &*record.partition).collect();
    assert!(partitions.len() <= LEAST_HEADS_SEEN, "the model looks at all of them");
    let open = partitions.iter().map(|partition| match *partition {
        "" => in_partition(""),
        partition => {
            let scope = Scope::Partition(task.clone(), partition.into());
            admitted(world, now, &queue, scope, in_partition(partition)).min(MOST_OF_A_PARTITION)
        }
    });
    TaskFacts {
        startable: admitted(world, now, &queue, scope.clone(), open.sum()),
        in_partitions: ready.len() as u64 - in_partition(""),
        oldest_ready_at: ready.iter().map(|record| record.due_at).min(),
        oldest_run_at: leased(world, &queue, &scope).filter_map(|record| record.started_at).min(),
        shut_by: shut_by(world, now, &queue, scope.clone()),
        counts,
    }
}

fn workers(world: &World, now: Timestamp) -> Vec<WorkerFacts> {
    let is_heard_of = |worker: &&Worker| worker.is_alive && worker.lives_until > now;
    let mut alive: Vec<&Worker> = world.workers.values().filter(is_heard_of).collect();
    alive.sort_by_key(|worker| worker.born);
    alive.into_iter().map(worker).collect()
}

fn worker(worker: &Worker) -> WorkerFacts {
    let Worker { hello, since, beat_at, report, .. } = worker;
    let queues = hello.queues.iter().map(|(queue, limits)| (Scope::Queue(queue.clone()), limits.clone()));
    let tasks = hello.tasks.iter().flat_map(|declared| {
        let each = (Scope::EachPartition(declared.task.clone()), declared.per_partition.clone());
        [(Scope::Task(declared.task.clone()), declared.limits.clone()), each]
    });
    let mut declared: Vec<(Scope, Limits)> = queues.chain(tasks).collect();
    declared.sort_by(|one, other| one.0.cmp(&other.0));
    let (worker, label) = (hello.worker, hello.label.clone());
    WorkerFacts { worker, label, since: *since, beat_at: *beat_at, declared, report: report.clone() }
}
