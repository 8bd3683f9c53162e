//! Who lives, and what it declares: register, retire, and the signs of life between.

use std::time::Duration;

use flexiq::internals::{Beat, Hello, Name, Timestamp, WorkerId};

use super::gates::limits;
use super::manner::Manner;
use super::schedules;
use super::world::{Worker, World};

/// A worker that says nothing for so long is forgotten.
const LONGEST_SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn register(world: &mut World, now: Timestamp, hello: Hello) {
    // How often beats will come, the first of them says.
    world.guards.beat(now, hello.lease, hello.lease * 3 / 10);
    let homes = hello.tasks.iter().filter(|task| task.schedule.is_some()).map(|task| &task.queue);
    for queue in hello.queues.iter().map(|(queue, _)| queue).chain(homes) {
        world.know(now, queue);
    }
    for declared in &hello.tasks {
        world.declarations.insert(declared.task.clone(), declared.json.clone());
        world.homes.insert(declared.task.clone(), declared.queue.clone());
    }
    // One that registers again is as old as it was, and does what it did.
    let before = world.workers.remove(&hello.worker);
    let next = 1 + world.workers.values().map(|worker| worker.born).max().unwrap_or(0);
    let born = before.as_ref().map_or(next, |worker| worker.born);
    let since = before.as_ref().map_or(now, |worker| worker.since);
    let report = before.and_then(|worker| worker.report);
    let lives_until = now + hello.lease;
    let worker = Worker { born, since, beat_at: now, lives_until, is_alive: true, report, hello };
    world.workers.insert(worker.hello.worker, worker);
    publish(world, now);
}

/// What holds may have changed: where each queue has a copy, it is brought to all.
pub(super) fn publish(world: &mut World, now: Timestamp) {
    publish_to(world, now, world.queues.clone());
}

/// Brings what holds to these queues. Who does so notices who is silent, and says when the next will be.
pub(super) fn publish_to(world: &mut World, now: Timestamp, queues: impl IntoIterator<Item = Name>) {
    if world.manner == Manner::Redis {
        notice_deaths(world, now);
        let silent_at = next_silence(world, now);
        world.silent_at.extend(queues.into_iter().map(|queue| (queue, silent_at)));
    }
}

/// When a living worker may next be found silent.
fn next_silence(world: &World, now: Timestamp) -> Timestamp {
    const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);
    let living = world.workers.values().filter(|worker| worker.is_alive);
    let silence = |worker: &Worker| {
        let is_guarded = worker.lives_until <= now;
        if is_guarded { world.guards.workers_after().unwrap_or(NEVER) } else { worker.lives_until }
    };
    living.map(silence).min().unwrap_or(NEVER)
}

/// A claim looks for silent workers: always, or where each queue has a copy of what holds, when one may be there.
pub(super) fn look_in_claim(world: &mut World, now: Timestamp, queue: &Name) {
    match world.manner {
        Manner::Sqlite => notice_deaths(world, now),
        Manner::Redis if world.silent_at.get(queue).is_some_and(|&at| at <= now) => publish(world, now),
        Manner::Redis => {}
    }
}

/// A worker has beaten. False if it is not known.
pub(super) fn beat(world: &mut World, now: Timestamp, beat: &Beat) -> bool {
    let Some(worker) = world.workers.get_mut(&beat.worker) else { return false };
    worker.beat_at = now;
    worker.lives_until = now + beat.lease;
    worker.is_alive = true;
    if let Some(report) = beat.kept_report() {
        worker.report = Some(report.to_owned());
    }
    true
}

/// Finds those silent that have not beaten for a lease: what they declared holds no more where others live.
pub(super) fn notice_deaths(world: &mut World, now: Timestamp) {
    let is_silent = |worker: &Worker| worker.is_alive && worker.lives_until <= now;
    // Only who finds one silent asks the guard, as with leases.
    if world.workers.values().any(is_silent) && world.guards.of_workers().may_reap(now) {
        for worker in world.workers.values_mut().filter(|worker| worker.lives_until <= now) {
            worker.is_alive = false;
        }
    }
}

pub(super) fn retire(world: &mut World, now: Timestamp, worker: WorkerId) {
    let before = (limits(world), schedules::declared(world));
    world.workers.remove(&worker);
    world.turns.retain(|(of, _), _| *of != worker);
    if (limits(world), schedules::declared(world)) != before {
        publish(world, now);
    }
}

/// Forgets who has been silent for a day, and their last turns.
pub(super) fn forget_the_silent(world: &mut World, now: Timestamp) {
    let silent: Vec<WorkerId> = world
        .workers
        .iter()
        .filter(|(_, worker)| !worker.is_alive && worker.beat_at + LONGEST_SILENCE < now)
        .map(|(id, _)| *id)
        .collect();
    if silent.is_empty() {
        return;
    }
    for worker in silent {
        world.workers.remove(&worker);
    }
    // A turn of a worker that has not registered again goes, too.
    world.turns.retain(|(of, _), _| world.workers.contains_key(of));
}
