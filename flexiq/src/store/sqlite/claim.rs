//! claim: leases the best of what may start to a worker.
//!
//! It looks only at lanes in which something is ready, of tasks that the worker has room for, and only at their
//! heads: the best of the heads is taken until the room is used up. So its work does not depend on how long the lanes
//! are, nor on what waits in others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use rusqlite::{OptionalExtension, Row, params};

use super::bells::Truth;
use super::codes::{read_id, state};
use super::enqueue::{PAYLOAD, duration, read_body};
use super::failure::Tried;
use super::house::{keep_house, next_moment};
use super::lanes::{LaneId, QueueId, read_name};
use super::write::Write;
use crate::clock::Timestamp;
use crate::job::JobId;
use crate::name::Name;
use crate::store::types::{Claim, Claimed, LeaseId, Outset, Payload, Room, WorkerId};

/// A claim answers at most this many jobs,
const MOST_JOBS: usize = 1_000;
/// and stops at this many bytes of their payloads.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// How many jobs of a lane are looked at first. What is looked at and not taken is work in vain.
const FIRST_CHUNK: usize = 8;

/// Claims; answers the jobs, best first, and whether a bound ended it early.
pub(super) fn claim(
    write: &mut Write<'_>,
    worker: WorkerId,
    queue_name: &Name,
    queue: QueueId,
    wanted: Claim,
) -> Tried<(Vec<Claimed>, bool)> {
    let mut more = keep_house(write, queue)?;
    if write.ledger.hides_ready() {
        write.ledger.write(write.connection)?;
    }
    let mut rooms = Rooms::new(&wanted);
    let waiting = waiting_lanes(write, queue)?;
    let mut heads = Heads::default();
    let mut lanes: Vec<OpenLane> = Vec::new();
    for lane in &waiting {
        if let Some(room) = rooms.find(&lane.task)
            && rooms.has(room)
        {
            lanes.push(OpenLane {
                id: lane.id,
                partition: lane.partition.clone(),
                room,
                next: VecDeque::new(),
                chunk: 0,
                ready: lane.ready,
            });
        }
    }
    let first = FIRST_CHUNK.max(rooms.total().min(MOST_JOBS).div_ceil(lanes.len().max(1)));
    for (index, lane) in lanes.iter_mut().enumerate() {
        lane.chunk = first;
        heads.refill(write, lane, index)?;
    }

    let mut claimed = Vec::new();
    let mut bytes = 0;
    let until = (write.now + wanted.lease).as_millis();
    while let Some(Reverse((key, index))) = heads.0.pop() {
        let lane = &mut lanes[index];
        if !rooms.has(lane.room) {
            // The whole lane is passed over.
            continue;
        }
        if claimed.len() >= MOST_JOBS || bytes >= MOST_BYTES {
            more = true;
            break;
        }
        let room = &wanted.tasks[lane.room];
        let job = lease(write, worker, room, &lane.partition, &key.id, until)?;
        bytes += job.payload.bytes.len();
        claimed.push(job);
        rooms.take(lane.room);
        lane.ready -= 1;
        write.ledger.leaves(queue, lane.id, state::READY);
        write.ledger.enters(queue, lane.id, state::RUNNING);
        heads.refill(write, lane, index)?;
    }

    // What is left, also of tasks that this worker cannot start: the truth for the bells.
    let left: HashMap<LaneId, i64> = lanes.iter().map(|lane| (lane.id, lane.ready)).collect();
    let mut startable: Vec<Name> = waiting
        .into_iter()
        .filter(|lane| left.get(&lane.id).copied().unwrap_or(lane.ready) > 0)
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
    Ok((claimed, more))
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
        .query_map([queue], |row| {
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
    tasks: Vec<(usize, u32)>,
    by_name: HashMap<Name, usize>,
}

impl Rooms {
    fn new(wanted: &Claim) -> Self {
        Self {
            slots: wanted.slots.clone(),
            tasks: wanted.tasks.iter().map(|room| (room.slot, room.at_most)).collect(),
            by_name: wanted
                .tasks
                .iter()
                .enumerate()
                .map(|(index, room)| (room.task.clone(), index))
                .collect(),
        }
    }

    fn find(&self, task: &Name) -> Option<usize> {
        self.by_name.get(task).copied()
    }

    fn has(&self, room: usize) -> bool {
        let (slot, at_most) = self.tasks[room];
        at_most > 0 && self.slots.get(slot).is_some_and(|&free| free > 0)
    }

    fn take(&mut self, room: usize) {
        let (slot, at_most) = &mut self.tasks[room];
        *at_most -= 1;
        self.slots[*slot] -= 1;
    }

    fn total(&self) -> usize {
        self.slots.iter().map(|&free| free as usize).sum()
    }
}

/// A lane that is claimed from, and the next of its jobs.
struct OpenLane {
    id: LaneId,
    partition: String,
    room: usize,
    next: VecDeque<Key>,
    chunk: usize,
    /// Jobs that are still ready.
    ready: i64,
}

/// The place of a job among all that may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rank: i32,
    due_at: i64,
    id: [u8; 16],
}

/// The best job of each open lane, best first.
#[derive(Default)]
struct Heads(BinaryHeap<Reverse<(Key, usize)>>);

impl Heads {
    /// Puts in the next job of a lane, if there is one.
    fn refill(&mut self, write: &Write<'_>, lane: &mut OpenLane, index: usize) -> rusqlite::Result<()> {
        if lane.next.is_empty() && lane.ready > 0 {
            // What was taken before is no longer ready, so the first of what is ready come next.
            let mut statement = write.connection.prepare_cached(include_str!("sql/claim_heads.sql"))?;
            let keys = statement.query_map(params![lane.id, lane.chunk as i64], |row| {
                Ok(Key { rank: row.get(0)?, due_at: row.get(1)?, id: read_id(row, 2)? })
            })?;
            for key in keys {
                lane.next.push_back(key?);
            }
            lane.chunk = (lane.chunk * 4).min(MOST_JOBS);
        }
        if let Some(key) = lane.next.pop_front() {
            self.0.push(Reverse((key, index)));
        }
        Ok(())
    }
}

/// Leases one job.
fn lease(
    write: &Write<'_>,
    worker: WorkerId,
    room: &Room,
    partition: &str,
    id: &[u8; 16],
    until: i64,
) -> rusqlite::Result<Claimed> {
    let now = write.now;
    let mut claimed = write
        .connection
        .prepare_cached(include_str!("sql/claim_lease.sql"))?
        .query_row(params![id, worker.as_bytes(), now.as_millis(), until, room.max_losses], |row| {
            read_lease(row, id, room.task.clone(), partition, now)
        })?;
    fill_payload(write, &mut claimed)?;
    Ok(claimed)
}

/// A lease that is held, as it was first answered. `None` if the worker does not hold it any more.
pub(super) fn read_claimed(
    write: &mut Write<'_>,
    worker: WorkerId,
    lease: LeaseId,
) -> rusqlite::Result<Option<Claimed>> {
    let id = lease.job.as_bytes();
    let connection = write.connection;
    let mut statement = connection.prepare_cached(include_str!("sql/claim_read.sql"))?;
    let mut rows = statement.query(params![id, worker.as_bytes(), lease.run])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let lane = write.lanes.name(connection, row.get(10)?)?;
    let claimed_at = Timestamp::from_millis(row.get(11)?);
    let mut claimed = read_lease(row, id, lane.task.clone(), &lane.partition, claimed_at)?;
    fill_payload(write, &mut claimed)?;
    Ok(Some(claimed))
}

fn read_lease(
    row: &Row<'_>,
    id: &[u8; 16],
    task: Name,
    partition: &str,
    claimed_at: Timestamp,
) -> rusqlite::Result<Claimed> {
    Ok(Claimed {
        lease: LeaseId { job: JobId::from_bytes(*id), run: row.get(0)? },
        task,
        partition: partition.into(),
        failures: row.get(1)?,
        deferrals: row.get(2)?,
        losses: row.get(3)?,
        ready_at: Timestamp::from_millis(row.get(4)?),
        outset: Outset {
            timeout: row.get::<_, Option<i64>>(5)?.map(duration),
            max_retries: row.get(6)?,
            result_ttl: row.get::<_, Option<i64>>(7)?.map(duration),
        },
        payload: Payload { codec: row.get(8)?, bytes: row.get::<_, Option<Vec<u8>>>(9)?.unwrap_or_default() },
        claimed_at,
    })
}

/// Fetches a payload that lies apart from its job.
fn fill_payload(write: &Write<'_>, claimed: &mut Claimed) -> rusqlite::Result<()> {
    if claimed.payload.bytes.is_empty()
        && let Some(bytes) = read_body(write.connection, claimed.lease.job.as_bytes(), PAYLOAD)?
    {
        claimed.payload.bytes = bytes;
    }
    Ok(())
}
