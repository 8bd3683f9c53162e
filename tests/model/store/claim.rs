//! claim: all that is ready, best first; each is taken if there is room and every gate is open.

use std::collections::BTreeSet;

use flexiq::internals::{Claim, Claimed, Lapse, Name, Timestamp, WorkerId};
use flexiq::{JobId, State};

use super::gates;
use super::house::keep_house;
use super::record::{Lease, Record};
use super::workers::look_in_claim;
use super::world::World;

const MOST_JOBS: usize = 1_000;
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Claims; answers the jobs, best first, and whether a bound ended it early.
pub(super) fn claim(
    world: &mut World,
    now: Timestamp,
    worker: WorkerId,
    queue: &Name,
    wanted: &Claim,
) -> (Vec<Claimed>, bool) {
    world.claims += 1;
    let left = keep_house(world, now, queue);
    look_in_claim(world, now, queue);
    if left.has_expired {
        // What has expired must not start: the next claim goes on from here.
        return (Vec::new(), true);
    }
    let mut wanted = wanted.clone();
    let mut claimed: Vec<Claimed> = Vec::new();
    let mut shut: BTreeSet<Name> = BTreeSet::new();
    let mut bytes = 0;
    for id in ready(world, queue) {
        let task = world.job(id).task.clone();
        let Some(max_losses) = room(&wanted, &task) else { continue };
        // What is shut stays shut for the rest of the claim: starts only fill gates, and no time passes.
        if shut.contains(&task) || !gates::is_open(world, now, queue, &task) {
            shut.insert(task);
            continue;
        }
        if claimed.len() >= MOST_JOBS || bytes >= MOST_BYTES {
            return (claimed, true);
        }
        take_room(&mut wanted, &task);
        gates::charge(world, now, queue, &task);
        let lease = Lease { worker, until: now + wanted.lease, max_losses, lapse: Lapse::Loss };
        let record = world.job(id);
        record.start(now, lease);
        bytes += record.payload.bytes.len();
        claimed.push(lease_of(world, id));
    }
    (claimed, left.has_more)
}

/// What is ready in a queue, best first.
fn ready(world: &World, queue: &Name) -> Vec<JobId> {
    let mut ready: Vec<&Record> =
        world.of_queue(queue).filter(|record| record.state == State::Ready).collect();
    ready.sort_unstable_by_key(|record| record.place());
    ready.into_iter().map(|record| record.id).collect()
}

/// The losses forgiven to a job of this task, if there is room for one more.
fn room(wanted: &Claim, task: &Name) -> Option<u32> {
    let room = wanted.tasks.iter().find(|room| room.task == *task)?;
    let free = *wanted.slots.get(room.slot)?;
    (free > 0 && room.at_most > 0).then_some(room.max_losses)
}

fn take_room(wanted: &mut Claim, task: &Name) {
    for room in wanted.tasks.iter_mut().filter(|room| room.task == *task) {
        room.at_most -= 1;
        wanted.slots[room.slot] -= 1;
    }
}

/// A running job, as it is answered to its worker.
pub(super) fn lease_of(world: &World, id: JobId) -> Claimed {
    let record = &world.jobs[&id];
    Claimed {
        lease: record.lease_id(),
        task: record.task.clone(),
        partition: record.partition.clone(),
        payload: record.payload.clone(),
        outset: record.outset,
        failures: record.failures,
        deferrals: record.deferrals,
        losses: record.losses,
        ready_at: record.due_at,
        claimed_at: record.started_at.expect("a running job was started"),
        is_capped: gates::is_capped(world, &record.queue, &record.task),
    }
}
