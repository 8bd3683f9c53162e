//! explain: everything that keeps a job waiting, looked up in all there is.

use std::cmp::Reverse;

use flexiq::internals::{
    Cause, Explanation, Holder, Limits, LiveWorker, MOST_COUNTED, MOST_NAMED, Name, Origin, Scope, Timestamp,
};
use flexiq::{JobId, State};

use super::gates::{gates_of, leased, standing};
use super::read::show;
use super::record::Record;
use super::world::{Worker, World};

pub(super) fn explain(world: &World, now: Timestamp, id: JobId) -> Option<Explanation> {
    let record = world.jobs.get(&id)?;
    let causes = match record.state {
        State::Scheduled(reason) => vec![Cause::NotDue { reason, due_at: record.due_at.into() }],
        State::Ready => causes(world, now, record),
        _ => vec![],
    };
    Some(Explanation::found(show(record), now, causes))
}

fn causes(world: &World, now: Timestamp, record: &Record) -> Vec<Cause> {
    let gates = gates_of(&record.queue, &record.task, &record.partition);
    let mut causes: Vec<Cause> =
        gates.into_iter().flat_map(|scope| shut_by(world, now, &record.queue, scope)).collect();
    causes.extend(no_worker(world, now, record));
    causes.extend(behind(world, record));
    causes
}

/// Each thing for itself by which a gate is shut.
pub(super) fn shut_by(world: &World, now: Timestamp, queue: &Name, scope: Scope) -> Vec<Cause> {
    let standing = standing(world, scope.clone());
    let Limits { max_concurrent, rates, .. } = standing.limits();
    let origin = |is_set| if is_set { Origin::Set } else { Origin::Declared };
    let mut causes = Vec::new();
    if standing.is_paused {
        causes.push(Cause::Paused { scope: scope.clone() });
    }
    if let Some(until) = world.gates.held_until(queue, &scope).filter(|&until| until > now) {
        causes.push(Cause::Held { scope: scope.clone(), until: until.into() });
    }
    let running = leased(world, queue, &scope).count() as u64;
    if let Some(max_concurrent) = max_concurrent.filter(|&cap| running >= u64::from(cap)) {
        causes.push(Cause::Full {
            scope: scope.clone(),
            max_concurrent,
            origin: origin(standing.overrides.max_concurrent.is_some()),
            running,
            holders: holders(world, queue, &scope),
        });
    }
    let meter = world.gates.meter(queue, &scope);
    let admissions = rates.iter().map(|rate| meter.admit(rate, 1, now));
    if let Some(opens_at) = admissions.filter(|it| it.starts == 0).map(|it| it.opens_at).max() {
        let origin = origin(standing.overrides.rates.is_some());
        causes.push(Cause::Spent { scope, rates, origin, opens_at: opens_at.into() });
    }
    causes
}

/// The first that started of those that a cap counts.
fn holders(world: &World, queue: &Name, scope: &Scope) -> Vec<Holder> {
    let mut running: Vec<&Record> = leased(world, queue, scope).collect();
    running.sort_by_key(|record| (record.started_at, record.id));
    let hold = |record: &Record| {
        let lease = record.lease.as_ref().expect("it runs");
        let started_at = record.started_at.expect("it runs");
        Holder { job: record.id, worker: lease.worker, started_at: started_at.into() }
    };
    running.into_iter().take(MOST_NAMED).map(hold).collect()
}

/// That none of those who live links the task and serves the queue.
fn no_worker(world: &World, now: Timestamp, record: &Record) -> Option<Cause> {
    let is_heard_of = |worker: &&Worker| worker.is_alive && worker.lives_until > now;
    let mut alive: Vec<(u64, LiveWorker)> = world
        .workers
        .values()
        .filter(is_heard_of)
        .map(|Worker { born, hello, .. }| {
            let worker = LiveWorker {
                worker: hello.worker,
                label: hello.label.clone(),
                links_task: hello.tasks.iter().any(|declared| declared.task == record.task),
                serves_queue: hello.queues.iter().any(|(queue, _)| *queue == record.queue),
            };
            (*born, worker)
        })
        .collect();
    if alive.iter().any(|(_, worker)| worker.links_task && worker.serves_queue) {
        return None;
    }
    alive.sort_by_key(|(born, worker)| Reverse((worker.links_task || worker.serves_queue, *born)));
    let total = alive.len() as u64;
    let alive = alive.into_iter().take(MOST_NAMED).map(|(_, worker)| worker).collect();
    Some(Cause::NoWorker { alive, total })
}

/// That others of its lane start first.
fn behind(world: &World, record: &Record) -> Option<Cause> {
    let is_before = |other: &&Record| {
        other.state == State::Ready
            && (&other.task, &other.partition) == (&record.task, &record.partition)
            && other.place() < record.place()
    };
    let before: Vec<&Record> = world.of_queue(&record.queue).filter(is_before).collect();
    let outranked = before.iter().any(|other| other.priority > record.priority);
    let jobs = MOST_COUNTED.min(before.len() as u64);
    (jobs > 0).then_some(Cause::Behind { jobs, outranked })
}
