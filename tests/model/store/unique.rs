//! unique: which job has each unique key of a queue, and what a call does that finds one taken.

use flexiq::internals::{Enqueued, Name, NewJob, OnDuplicate, Release, Timestamp, UniqueKey};
use flexiq::{JobId, ScheduledReason, State};

use super::record::Record;
use super::world::World;

/// A key, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) job: JobId,
    /// Whether it is its job's as long as that lives, or waits.
    is_bound: bool,
    /// It is taken until then in any case.
    until: Option<Timestamp>,
}

/// The job that has a key now.
pub(super) fn owner(world: &World, now: Timestamp, queue: &Name, key: UniqueKey) -> Option<JobId> {
    let taken = world.keys.get(&(queue.clone(), key))?;
    let is_taken = taken.is_bound || taken.until.is_some_and(|until| until > now);
    is_taken.then_some(taken.job)
}

/// A job that was stored now takes its key.
pub(super) fn take(world: &mut World, now: Timestamp, id: JobId) {
    let record = &world.jobs[&id];
    let Some(unique) = record.unique else { return };
    let release = unique.release;
    let taken = Taken {
        job: id,
        is_bound: !matches!(release, Release::After(_)),
        until: release.is_timed().then(|| now + release.held_for()),
    };
    world.keys.insert((record.queue.clone(), unique.key), taken);
}

/// A job that begins anew takes its key again; or answers who has it.
pub(super) fn take_again(world: &mut World, now: Timestamp, id: JobId) -> Result<(), JobId> {
    let record = &world.jobs[&id];
    let queue = record.queue.clone();
    let Some(unique) = record.unique.filter(|unique| !matches!(unique.release, Release::After(_))) else {
        return Ok(());
    };
    if let Some(other) = owner(world, now, &queue, unique.key).filter(|&owner| owner != id) {
        return Err(other);
    }
    let own = world.keys.get(&(queue.clone(), unique.key)).filter(|taken| taken.job == id);
    let until = own.and_then(|taken| taken.until);
    world.keys.insert((queue, unique.key), Taken { job: id, is_bound: true, until });
    Ok(())
}

/// A job has started.
pub(super) fn start(world: &mut World, now: Timestamp, id: JobId) {
    if matches!(world.jobs[&id].unique, Some(unique) if matches!(unique.release, Release::AtStart { .. })) {
        release(world, now, |_, job| job == id);
    }
}

/// Whatever has ended is bound to its key no more.
pub(super) fn settle(world: &mut World, now: Timestamp) {
    release(world, now, |world, job| world.jobs.get(&job).is_none_or(|record| record.state.is_ended()));
}

/// Releases the keys that such jobs are bound to. What time still holds is there until a beat or a call forgets it.
fn release(world: &mut World, now: Timestamp, is_it: impl Fn(&World, JobId) -> bool) {
    let bound = world.keys.iter().filter(|(_, taken)| taken.is_bound && is_it(world, taken.job));
    for key in bound.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
        match world.keys.get_mut(&key) {
            Some(taken) if taken.until.is_some_and(|until| until > now) => taken.is_bound = false,
            _ => drop(world.keys.remove(&key)),
        }
    }
}

/// Forgets at most so many keys of a queue that time has freed, the first first.
pub(super) fn forget_over(world: &mut World, now: Timestamp, queue: &Name, most: usize) {
    let over = |taken: &Taken| taken.until.filter(|&until| !taken.is_bound && until <= now);
    let of_queue = world.keys.iter().filter(|((of, _), _)| of == queue);
    let mut gone: Vec<_> =
        of_queue.filter_map(|((_, key), taken)| over(taken).map(|until| (until, *key))).collect();
    gone.sort_unstable();
    for (_, key) in gone.into_iter().take(most) {
        world.keys.remove(&(queue.clone(), key));
    }
}

/// A job is deleted by hand: its key is free at once.
pub(super) fn delete(world: &mut World, id: JobId) {
    world.keys.retain(|_, taken| taken.job != id);
}

/// What a call does to the job that has its key.
pub(super) fn replace(world: &mut World, now: Timestamp, owner: JobId, call: NewJob) -> Enqueued {
    let on_duplicate = call.unique.map_or(OnDuplicate::Keep, |unique| unique.on_duplicate);
    let pending = world.jobs.get_mut(&owner).filter(|record| record.state.is_pending());
    match (pending, on_duplicate) {
        (None, _) | (_, OnDuplicate::Keep) => Enqueued::there(owner),
        (Some(record), _) => {
            record.payload = call.payload;
            record.outset = call.outset;
            let is_as_stored = record.state == State::Scheduled(ScheduledReason::Delay);
            if on_duplicate == OnDuplicate::Postpone && is_as_stored {
                let due = call.due.from(now);
                record.wait_until(due, now, State::Scheduled(ScheduledReason::Delay));
                record.expires_at = call.expires.map(|expires| due.max(now) + expires);
            }
            Enqueued { is_replaced: true, ..Enqueued::there(owner) }
        }
    }
}

/// Whether a call would give a pending job the arguments of another partition.
pub(super) fn is_misplaced(owner: Option<&Record>, call: &NewJob) -> bool {
    owner.is_some_and(|record| {
        record.state.is_pending() && (&record.task, &record.partition) != (&call.task, &call.partition)
    })
}
