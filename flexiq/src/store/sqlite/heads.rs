//! The head of a lane, as a claim sees it: the next jobs in their order, read in chunks and leased together.
//!
//! A claim takes a lane from its front, so what it has taken is always the first so many of what is ready: one
//! statement leases them, and a row costs a third of what it costs with a statement of its own. Where many lanes give
//! one job each, one statement leases those of many lanes.

use std::collections::VecDeque;

use rusqlite::{Row, params};

use super::codes::{read_id, unreadable};
use super::enqueue::{PAYLOAD, duration, read_body};
use super::gates::is_capped;
use super::lanes::LaneId;
use super::write::Write;
use crate::clock::Timestamp;
use crate::job::JobId;
use crate::name::Name;
use crate::store::types::{Claim, Claimed, LeaseId, Outset, Payload, WorkerId};

/// Lanes that are leased from in one statement: the ids in `claim_lease_heads.sql`.
const TOGETHER: usize = 20;

/// The place of a job among all that may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    rank: i32,
    due_at: i64,
    id: [u8; 16],
}

/// A lane that is claimed from.
pub(super) struct OpenLane {
    pub(super) id: LaneId,
    partition: String,
    /// The index of its task among the waiting ones,
    pub(super) task: usize,
    /// and of its task's room.
    room: usize,
    /// Jobs that were ready when the claim began.
    pub(super) ready: i64,
    /// Of these, how many are leased now.
    pub(super) leased: i64,
    /// How many to read next.
    pub(super) chunk: usize,
    /// Read, and neither taken nor leased.
    next: VecDeque<(Key, Claimed)>,
    /// Taken, and not leased yet,
    taken: i64,
    /// and the last of these.
    last: [u8; 16],
}

impl OpenLane {
    pub(super) fn new(id: LaneId, partition: String, task: usize, room: usize, ready: i64) -> Self {
        let next = VecDeque::new();
        Self { id, partition, task, room, ready, leased: 0, chunk: 1, next, taken: 0, last: [0; 16] }
    }

    /// The place of its next job, if there is one.
    pub(super) fn head(
        &mut self,
        write: &Write<'_>,
        worker: WorkerId,
        wanted: &Claim,
    ) -> rusqlite::Result<Option<Key>> {
        if self.next.is_empty() && self.leased + self.taken < self.ready {
            // What was taken must be out of the way before the next are read.
            self.lease(write, worker, wanted)?;
            self.read(write, &wanted.tasks[self.room].task)?;
        }
        Ok(self.next.front().map(|(key, _)| *key))
    }

    /// Takes the next job, with its payload. It is leased at the end.
    pub(super) fn take(&mut self, write: &mut Write<'_>) -> rusqlite::Result<Option<Claimed>> {
        let Some((key, mut job)) = self.next.pop_front() else { return Ok(None) };
        self.taken += 1;
        self.last = key.id;
        fill_payload(write, &mut job)?;
        write.lanes.expect_finish(job.lease.job, self.id);
        Ok(Some(job))
    }

    fn read(&mut self, write: &Write<'_>, task: &Name) -> rusqlite::Result<()> {
        let mut statement = write.connection.prepare_cached(include_str!("sql/claim_heads.sql"))?;
        let mut rows = statement.query(params![self.id, self.chunk as i64])?;
        while let Some(row) = rows.next()? {
            let id = read_id(row, 0)?;
            let key = Key { rank: row.get(11)?, due_at: row.get(5)?, id };
            let mut job = read_lease(row, task.clone(), &self.partition, write.now)?;
            job.lease.run += 1;
            self.next.push_back((key, job));
        }
        self.chunk *= 4;
        Ok(())
    }

    /// Leases what was taken.
    pub(super) fn lease(
        &mut self,
        write: &Write<'_>,
        worker: WorkerId,
        wanted: &Claim,
    ) -> rusqlite::Result<()> {
        if self.taken == 0 {
            return Ok(());
        }
        let leased =
            write.connection.prepare_cached(include_str!("sql/claim_lease.sql"))?.execute(params![
                self.id,
                self.taken,
                worker.as_bytes(),
                write.now.as_millis(),
                (write.now + wanted.lease).as_millis(),
                wanted.tasks[self.room].max_losses,
            ])?;
        self.leased(leased)
    }

    /// So many of what was taken are leased.
    fn leased(&mut self, leased: usize) -> rusqlite::Result<()> {
        if leased as i64 != self.taken {
            return Err(unreadable(format!("a lane with {leased} jobs where {} were read", self.taken)));
        }
        self.leased += self.taken;
        self.taken = 0;
        Ok(())
    }
}

/// Leases the jobs of lanes of which one each was taken, some lanes in one statement: a statement costs more than a row.
/// What is left is leased lane by lane.
pub(super) fn lease_single_heads(
    write: &Write<'_>,
    worker: WorkerId,
    wanted: &Claim,
    lanes: &mut [OpenLane],
) -> rusqlite::Result<()> {
    let mut singles: Vec<&mut OpenLane> = lanes.iter_mut().filter(|lane| lane.taken == 1).collect();
    let max_losses = |lane: &OpenLane| wanted.tasks[lane.room].max_losses;
    singles.sort_by_key(|lane| max_losses(lane));
    for alike in singles.chunk_by_mut(|one, other| max_losses(one) == max_losses(other)) {
        for lanes in alike.chunks_exact_mut(TOGETHER) {
            let mut statement = write.connection.prepare_cached(include_str!("sql/claim_lease_heads.sql"))?;
            statement.raw_bind_parameter(1, worker.as_bytes())?;
            statement.raw_bind_parameter(2, write.now.as_millis())?;
            statement.raw_bind_parameter(3, (write.now + wanted.lease).as_millis())?;
            statement.raw_bind_parameter(4, max_losses(lanes[0]))?;
            for (index, lane) in lanes.iter().enumerate() {
                statement.raw_bind_parameter(5 + index, lane.last)?;
            }
            if statement.raw_execute()? != TOGETHER {
                return Err(unreadable("lanes without the heads that were read".into()));
            }
            lanes.iter_mut().try_for_each(|lane| lane.leased(1))?;
        }
    }
    Ok(())
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
    let lane = write.lanes.name(connection, row.get(11)?)?;
    let claimed_at = Timestamp::from_millis(row.get(12)?);
    let mut claimed = read_lease(row, lane.task.clone(), &lane.partition, claimed_at)?;
    claimed.is_capped = is_capped(connection, &lane.queue, &lane.task)?;
    fill_payload(write, &mut claimed)?;
    Ok(Some(claimed))
}

/// The first eleven columns of `claim_heads.sql` and `claim_read.sql`.
fn read_lease(
    row: &Row<'_>,
    task: Name,
    partition: &str,
    claimed_at: Timestamp,
) -> rusqlite::Result<Claimed> {
    Ok(Claimed {
        lease: LeaseId { job: JobId::from_bytes(read_id(row, 0)?), run: row.get(1)? },
        task,
        partition: partition.into(),
        failures: row.get(2)?,
        deferrals: row.get(3)?,
        losses: row.get(4)?,
        ready_at: Timestamp::from_millis(row.get(5)?),
        outset: Outset {
            timeout: row.get::<_, Option<i64>>(6)?.map(duration),
            max_retries: row.get(7)?,
            result_ttl: row.get::<_, Option<i64>>(8)?.map(duration),
        },
        payload: Payload {
            codec: row.get(9)?,
            bytes: row.get::<_, Option<Vec<u8>>>(10)?.unwrap_or_default(),
        },
        claimed_at,
        is_capped: false,
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
