//! claim: leases the best of what may start to a worker.
//!
//! It looks only at lanes in which something is ready, of tasks that the worker has room for, and only at their
//! heads: the best of the heads is taken until the room is used up. So its work does not depend on how long the lanes
//! are, nor on what waits in others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use rusqlite::params;

use super::bells::Truth;
use super::codes::state;
use super::failure::Tried;
use super::heads::{Key, OpenLane};
use super::house::{keep_house, next_moment};
use super::lanes::{LaneId, QueueId, read_name};
use super::write::Write;
use crate::name::Name;
use crate::store::types::{Claim, Claimed, WorkerId};

/// A claim answers at most this many jobs,
const MOST_JOBS: usize = 1_000;
/// and stops at this many bytes of their payloads.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Claims; answers the jobs, best first, and whether a bound ended it early.
pub(super) fn claim(
    write: &mut Write<'_>,
    worker: WorkerId,
    queue_name: &Name,
    queue: QueueId,
    wanted: Claim,
    waiting_workers: usize,
) -> Tried<(Vec<Claimed>, bool)> {
    let left = keep_house(write, queue)?;
    if left.has_expired {
        // What has expired must not start: the next claim goes on from here.
        return Ok((Vec::new(), true));
    }
    if write.ledger.hides_ready() {
        write.ledger.write(write.connection)?;
    }
    let mut rooms = Rooms::new(&wanted);
    let waiting = waiting_lanes(write, queue)?;
    let mut lanes = rooms.open(&waiting, &wanted);
    // While others wait, a burst is shared with them: what is left wakes the next.
    let startable: usize = lanes.iter().map(|lane| lane.ready as usize).sum();
    rooms.most = startable.div_ceil(waiting_workers + 1);
    let (claimed, is_bounded) = take(write, worker, &wanted, &mut rooms, &mut lanes)?;
    for lane in &mut lanes {
        lane.lease(write, worker, &wanted)?;
        write.ledger.adds(queue, lane.id, state::READY, -lane.leased);
        write.ledger.adds(queue, lane.id, state::RUNNING, lane.leased);
    }

    // What is left, also of tasks that this worker cannot start: the truth for the bells.
    let still_ready: HashMap<LaneId, i64> =
        lanes.iter().map(|lane| (lane.id, lane.ready - lane.leased)).collect();
    let mut startable: Vec<Name> = waiting
        .into_iter()
        .filter(|lane| still_ready.get(&lane.id).copied().unwrap_or(lane.ready) > 0)
        .map(|lane| lane.task)
        .collect();
    startable.dedup();
    write.news.claim = Some(Truth {
        worker,
        queue: queue_name.clone(),
        tasks: wanted.tasks.into_iter().map(|room| room.task).collect(),
        startable,
    });
    write.news.moments.push((queue_name.clone(), next_moment(write.connection, queue)?));
    Ok((claimed, left.has_more || is_bounded))
}

/// Takes the best head again and again while there is room; answers whether a bound ended it.
fn take(
    write: &mut Write<'_>,
    worker: WorkerId,
    wanted: &Claim,
    rooms: &mut Rooms,
    lanes: &mut [OpenLane],
) -> Tried<(Vec<Claimed>, bool)> {
    // As many of each lane as if all took part alike: with one lane that is all of it, with many little is read in vain.
    let share = rooms.total().min(MOST_JOBS).div_ceil(lanes.len().max(1));
    let mut heads: BinaryHeap<Reverse<(Key, usize)>> = BinaryHeap::with_capacity(lanes.len());
    for (index, lane) in lanes.iter_mut().enumerate() {
        // One more, so that the place of the next is known when they are taken.
        lane.chunk = (share + 1).min(rooms.of(lane.room)).max(1);
        heads.extend(lane.head(write, worker, wanted)?.map(|key| Reverse((key, index))));
    }
    let mut claimed = Vec::new();
    let mut bytes = 0;
    while let Some(Reverse((_, index))) = heads.pop() {
        let lane = &mut lanes[index];
        if rooms.of(lane.room) == 0 {
            // The whole lane is passed over.
            continue;
        }
        if claimed.len() >= MOST_JOBS || bytes >= MOST_BYTES {
            return Ok((claimed, true));
        }
        let Some(job) = lane.take(write)? else { continue };
        bytes += job.payload.bytes.len();
        claimed.push(job);
        rooms.take(lane.room);
        if rooms.of(lane.room) > 0 {
            heads.extend(lane.head(write, worker, wanted)?.map(|key| Reverse((key, index))));
        }
    }
    Ok((claimed, false))
}

/// A lane in which something is ready.
struct WaitingLane {
    id: LaneId,
    task: Name,
    partition: String,
    ready: i64,
}

/// The lanes of a queue in which something is ready, by task.
fn waiting_lanes(write: &Write<'_>, queue: QueueId) -> rusqlite::Result<Vec<WaitingLane>> {
    write
        .connection
        .prepare_cached(include_str!("sql/claim_lanes.sql"))?
        .query_map(params![queue], |row| {
            Ok(WaitingLane {
                id: row.get(0)?,
                task: read_name("task", row.get_ref(1)?.as_str()?)?,
                partition: row.get(2)?,
                ready: row.get(3)?,
            })
        })?
        .collect()
}

/// What room is left, by slot and by task.
struct Rooms {
    slots: Vec<u32>,
    /// The slot of each task, and how many of it are still taken.
    tasks: Vec<(usize, u32)>,
    /// How many are still taken in all.
    most: usize,
}

impl Rooms {
    fn new(wanted: &Claim) -> Self {
        Self {
            slots: wanted.slots.clone(),
            tasks: wanted.tasks.iter().map(|room| (room.slot, room.at_most)).collect(),
            most: usize::MAX,
        }
    }

    /// The lanes that there is room for.
    fn open(&self, waiting: &[WaitingLane], wanted: &Claim) -> Vec<OpenLane> {
        let rooms: HashMap<&Name, usize> =
            wanted.tasks.iter().enumerate().map(|(index, room)| (&room.task, index)).collect();
        waiting
            .iter()
            .filter_map(|lane| Some((lane, *rooms.get(&lane.task)?)))
            .filter(|(_, room)| self.of(*room) > 0)
            .map(|(lane, room)| OpenLane::new(lane.id, lane.partition.clone(), room, lane.ready))
            .collect()
    }

    /// How many more of a task may be taken.
    fn of(&self, room: usize) -> usize {
        let (slot, at_most) = self.tasks[room];
        self.slots.get(slot).map_or(0, |&free| free.min(at_most) as usize).min(self.most)
    }

    fn take(&mut self, room: usize) {
        let (slot, at_most) = &mut self.tasks[room];
        *at_most -= 1;
        self.slots[*slot] -= 1;
        self.most -= 1;
    }

    fn total(&self) -> usize {
        self.slots.iter().map(|&free| free as usize).sum::<usize>().min(self.most)
    }
}
