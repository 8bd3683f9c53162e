//! claim: the best of what may start, again and again, while there is room.

use std::collections::{BTreeMap, VecDeque};

use flexiq::internals::{Claim, Claimed, DueTick, Lapse, Name, Timestamp, WorkerId};
use flexiq::{JobId, State};

use super::house::keep_house;
use super::record::{Lease, Record};
use super::workers::look_in_claim;
use super::world::World;
use super::{gates, schedules, turns, unique};

const MOST_JOBS: usize = 1_000;
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// The jobs of one task that are ready, best first, by partition; those without one stand under "".
type Lanes = BTreeMap<String, VecDeque<JobId>>;

/// Claims; answers the jobs, best first, whether a bound ended it early, and the schedules that are due.
pub(super) fn claim(
    world: &mut World,
    now: Timestamp,
    worker: WorkerId,
    queue: &Name,
    wanted: &Claim,
) -> (Vec<Claimed>, bool, Vec<DueTick>) {
    world.starters += 1;
    let was_due = schedules::is_due(world, now, queue);
    let left = keep_house(world, now, queue);
    look_in_claim(world, now, queue);
    let ticks = schedules::tell_in_claim(world, now, queue, was_due);
    if left.has_expired {
        // What has expired must not start: the next claim goes on from here.
        return (Vec::new(), true, ticks);
    }
    turns::settle(world);
    let mut wanted = wanted.clone();
    let mut claimed: Vec<Claimed> = Vec::new();
    let mut bytes = 0;
    let mut tasks = ready(world, queue);
    while let Some((task, partition)) = best(world, now, queue, &wanted, &mut tasks) {
        if claimed.len() >= MOST_JOBS || bytes >= MOST_BYTES {
            return (claimed, true, ticks);
        }
        let lane = tasks.get_mut(&task).and_then(|lanes| lanes.get_mut(&partition));
        let id = lane.and_then(VecDeque::pop_front).expect("the best is there");
        let max_losses = take_room(&mut wanted, &task);
        gates::charge(world, now, queue, &task, &partition);
        let lease = Lease { worker, until: now + wanted.lease, max_losses, lapse: Lapse::Loss };
        let record = world.job(id);
        record.start(now, lease);
        bytes += record.payload.bytes.len();
        unique::start(world, now, id);
        if !partition.is_empty() {
            world.rotations.entry((queue.clone(), task)).or_default().serve(&partition);
        }
        claimed.push(lease_of(world, id));
    }
    (claimed, left.has_more, ticks)
}

/// What is ready in a queue, by task.
fn ready(world: &World, queue: &Name) -> BTreeMap<Name, Lanes> {
    let mut ready: Vec<&Record> =
        world.of_queue(queue).filter(|record| record.state == State::Ready).collect();
    ready.sort_unstable_by_key(|record| record.place());
    let mut tasks: BTreeMap<Name, Lanes> = BTreeMap::new();
    for record in ready {
        let lanes = tasks.entry(record.task.clone()).or_default();
        lanes.entry(record.partition.clone()).or_default().push_back(record.id);
    }
    tasks
}

/// The lane, by task and partition, whose head starts next; nothing if nothing may start. What is found shut is dropped:
/// it stays shut for the rest of the claim, for starts only fill gates, and no time passes.
fn best(
    world: &World,
    now: Timestamp,
    queue: &Name,
    wanted: &Claim,
    tasks: &mut BTreeMap<Name, Lanes>,
) -> Option<(Name, String)> {
    tasks.retain(|task, lanes| {
        lanes.retain(|partition, jobs| {
            !jobs.is_empty() && gates::is_partition_open(world, now, queue, task, partition)
        });
        !lanes.is_empty() && has_room(wanted, task) && gates::is_task_open(world, now, queue, task)
    });
    let place = |id: &JobId| world.jobs[id].place();
    let candidates = tasks.iter().filter_map(|(task, lanes)| {
        let head = |partition: &String| place(&lanes[partition][0]);
        let next = lanes.keys().filter(|partition| !partition.is_empty()).min_by_key(|partition| {
            let (priority, due, id) = head(partition);
            let turn = world.rotations[&(queue.clone(), task.clone())].turn(partition);
            (priority, turn, due, id)
        });
        let plain = lanes.keys().find(|partition| partition.is_empty());
        let partition = next.into_iter().chain(plain).min_by_key(|partition| head(partition))?;
        Some((head(partition), task, partition))
    });
    candidates.min().map(|(_, task, partition)| (task.clone(), partition.clone()))
}

/// Whether there is room for one more of this task.
fn has_room(wanted: &Claim, task: &Name) -> bool {
    let Some(room) = wanted.tasks.iter().find(|room| room.task == *task) else { return false };
    room.at_most > 0 && wanted.slots.get(room.slot).is_some_and(|&free| free > 0)
}

/// Takes room for one; answers the losses forgiven to its job.
fn take_room(wanted: &mut Claim, task: &Name) -> u32 {
    let room = wanted.tasks.iter_mut().find(|room| room.task == *task).expect("it has room");
    room.at_most -= 1;
    wanted.slots[room.slot] -= 1;
    room.max_losses
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
        is_capped: gates::is_capped(world, &record.queue, &record.task, &record.partition),
    }
}
