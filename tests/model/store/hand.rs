//! What is done by hand: cancel, retry, delete.

use flexiq::internals::{Cancelled, Name, Swept, Timestamp};
use flexiq::{JobId, State};

use super::record::Cancel;
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
pub(super) fn retry(world: &mut World, now: Timestamp, id: JobId) -> bool {
    let Some(record) = world.jobs.get_mut(&id) else { return false };
    if !record.state.is_ended() || record.state == State::Succeeded {
        return false;
    }
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
    true
}

pub(super) fn delete(world: &mut World, id: JobId) -> bool {
    let has_ended = world.jobs.get(&id).is_some_and(|record| record.state.is_ended());
    if has_ended {
        world.jobs.remove(&id);
    }
    has_ended
}
