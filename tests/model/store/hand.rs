//! What is done by hand: cancel, retry, delete.

use flexiq::internals::{Cancelled, Name, Retried, Swept, Timestamp};
use flexiq::{JobId, State};

use super::record::{Cancel, Record};
use super::unique;
use super::world::World;

pub(super) fn cancel(world: &mut World, now: Timestamp, id: JobId) -> Option<Cancelled> {
    let record = world.jobs.get_mut(&id)?;
    if record.state.is_ended() {
        return Some(Cancelled::AlreadyEnded(record.state));
    }
    if record.is_running() {
        if record.cancel == Cancel::No {
            record.cancel = Cancel::Asked;
        }
        return Some(Cancelled::Requested);
    }
    record.cancel(now);
    Some(Cancelled::Done)
}

const MOST_SWEPT: usize = 1_000;

/// Cancels what runs of a partition, and of what is pending the first by id.
pub(super) fn cancel_partition(world: &mut World, now: Timestamp, task: &Name, partition: &str) -> Swept {
    let mut swept = Swept::default();
    let all: Vec<JobId> = world
        .jobs
        .values()
        .filter(|record| record.task == *task && record.partition == partition)
        .filter(|record| !record.state.is_ended())
        .map(|record| record.id)
        .collect();
    for id in all {
        if world.job(id).is_running() {
            swept.requested += 1;
        } else if swept.done == MOST_SWEPT as u64 {
            swept.more = true;
            continue;
        } else {
            swept.done += 1;
        }
        cancel(world, now, id);
    }
    swept
}

/// A new generation: fresh budgets, no expiry; the run number goes on.
pub(super) fn retry(world: &mut World, now: Timestamp, id: JobId) -> Retried {
    let is_fit = |record: &&Record| record.state.is_ended() && record.state != State::Succeeded;
    if world.jobs.get(&id).filter(is_fit).is_none() {
        return Retried::Untouched;
    }
    if let Err(owner) = unique::take_again(world, now, id) {
        return Retried::KeyTaken(owner);
    }
    let record = world.job(id);
    record.state = State::Ready;
    record.due_at = now;
    record.failures = 0;
    record.deferrals = 0;
    record.losses = 0;
    record.last_error = None;
    record.cancel = Cancel::No;
    record.expires_at = None;
    record.started_at = None;
    record.ended_at = None;
    record.kept_until = None;
    Retried::Done
}

pub(super) fn delete(world: &mut World, id: JobId) -> bool {
    let has_ended = world.jobs.get(&id).is_some_and(|record| record.state.is_ended());
    if has_ended {
        world.jobs.remove(&id);
        unique::delete(world, id);
    }
    has_ended
}
