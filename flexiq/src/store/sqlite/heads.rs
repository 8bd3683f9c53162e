//! The head of a lane, as a claim sees it: the keys of the next jobs in their order, read in chunks from the index alone.
//!
//! A job is read when it is taken, and all that were taken are leased at the end, many in one statement: a statement
//! costs more than a row.

use std::collections::VecDeque;

use rusqlite::{CachedStatement, Connection, Row, params};

use super::codes::{read_id, unreadable};
use super::enqueue::{PAYLOAD, duration, read_body};
use super::gates::is_capped;
use super::lanes::LaneId;
use super::unique;
use super::write::Write;
use crate::clock::Timestamp;
use crate::job::JobId;
use crate::name::Name;
use crate::store::types::{Claim, Claimed, LeaseId, Outset, Payload, WorkerId};

/// Jobs that are leased in one statement: the ids in `claim_lease.sql`.
const TOGETHER: usize = 25;

/// The place of a job among all that may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) rank: i32,
    pub(super) due_at: i64,
    pub(super) id: [u8; 16],
}

/// The statements that a claim reads with.
pub(super) struct Reads<'a> {
    heads: CachedStatement<'a>,
    job: CachedStatement<'a>,
}

impl<'a> Reads<'a> {
    pub(super) fn prepare(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            heads: connection.prepare_cached(include_str!("sql/claim_heads.sql"))?,
            job: connection.prepare_cached(include_str!("sql/claim_job.sql"))?,
        })
    }

    /// The place of the first job of a lane in which something is ready.
    pub(super) fn first(&mut self, lane: LaneId) -> rusqlite::Result<Key> {
        self.heads.query_row(params![lane, 1, 0], read_key)
    }
}

/// A lane that is claimed from.
pub(super) struct OpenLane {
    pub(super) id: LaneId,
    partition: String,
    /// The index of its task among the waiting ones,
    pub(super) task: usize,
    /// and of its task's room.
    pub(super) room: usize,
    /// Jobs that were ready when the claim began.
    pub(super) ready: i64,
    /// Of these, how many are taken.
    pub(super) taken: i64,
    /// How many to read next.
    pub(super) chunk: usize,
    /// Read, and not taken.
    next: VecDeque<Key>,
}

impl OpenLane {
    pub(super) fn new(id: LaneId, partition: String, task: usize, room: usize, ready: i64) -> Self {
        Self { id, partition, task, room, ready, taken: 0, chunk: 1, next: VecDeque::new() }
    }

    /// The place of its next job, if there is one.
    pub(super) fn head(&mut self, reads: &mut Reads<'_>) -> rusqlite::Result<Option<Key>> {
        if self.next.is_empty() && self.taken < self.ready {
            // What was taken is not leased yet, and stands before the next.
            let mut rows = reads.heads.query(params![self.id, self.chunk as i64, self.taken])?;
            while let Some(row) = rows.next()? {
                self.next.push_back(read_key(row)?);
            }
            self.chunk *= 4;
        }
        Ok(self.next.front().copied())
    }

    /// Takes the next job, with its payload. It is leased at the end.
    pub(super) fn take(
        &mut self,
        write: &mut Write<'_>,
        reads: &mut Reads<'_>,
        task: &Name,
    ) -> rusqlite::Result<Option<Claimed>> {
        let Some(key) = self.next.pop_front() else { return Ok(None) };
        self.taken += 1;
        let mut job =
            reads.job.query_row([key.id], |row| read_lease(row, task.clone(), &self.partition, write.now))?;
        job.lease.run += 1;
        fill_payload(write, &mut job)?;
        write.lanes.expect_finish(job.lease.job, self.id);
        Ok(Some(job))
    }
}

fn read_key(row: &Row<'_>) -> rusqlite::Result<Key> {
    Ok(Key { rank: row.get(0)?, due_at: row.get(1)?, id: read_id(row, 2)? })
}

/// Leases jobs that were taken, all with the same number of losses that they may have.
pub(super) fn lease(
    write: &Write<'_>,
    worker: WorkerId,
    wanted: &Claim,
    max_losses: u32,
    jobs: &[JobId],
) -> rusqlite::Result<()> {
    let mut statement = write.connection.prepare_cached(include_str!("sql/claim_lease.sql"))?;
    for jobs in jobs.chunks(TOGETHER) {
        statement.raw_bind_parameter(1, worker.as_bytes())?;
        statement.raw_bind_parameter(2, write.now.as_millis())?;
        statement.raw_bind_parameter(3, (write.now + wanted.lease).as_millis())?;
        statement.raw_bind_parameter(4, max_losses)?;
        for place in 0..TOGETHER {
            statement.raw_bind_parameter(5 + place, jobs.get(place).map(JobId::as_bytes))?;
        }
        if statement.raw_execute()? != jobs.len() {
            return Err(unreadable("a lane without the jobs that were read".into()));
        }
    }
    unique::free_started(write, jobs)
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
    claimed.is_capped = is_capped(connection, lane)?;
    fill_payload(write, &mut claimed)?;
    Ok(Some(claimed))
}

/// The first eleven columns of `claim_job.sql` and `claim_read.sql`.
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
