//! cancel: ends a pending job at once, and tells a running one to stop.

use rusqlite::{Connection, OptionalExtension, params};

use super::codes::{read_id, read_state, state, state_code};
use super::failure::Tried;
use super::lanes::{LaneId, QueueId};
use super::partitions::lanes_of;
use super::retention;
use super::write::Write;
use crate::job::{JobId, State};
use crate::store::types::{Cancelled, Swept, WorkerId};

pub(super) fn cancel(write: &mut Write<'_>, job: JobId) -> Tried<Option<Cancelled>> {
    let id = job.as_bytes();
    let found = write
        .connection
        .prepare_cached("SELECT queue, lane, state, reason, worker FROM flexiq_jobs WHERE id = ?1")?
        .query_row([id], |row| {
            let state = read_state(row.get(2)?, row.get(3)?)?;
            Ok((row.get(0)?, row.get(1)?, state, row.get::<_, Option<[u8; 16]>>(4)?))
        })
        .optional()?;
    let Some((queue, lane, from, worker)) = found else { return Ok(None) };
    match from {
        State::Scheduled(_) | State::Ready => {
            write
                .connection
                .prepare_cached(
                    "UPDATE flexiq_jobs SET state = 5, reason = 0, ended_at = ?2, until = ?3 WHERE id = ?1",
                )?
                .execute(params![
                    id,
                    write.now.as_millis(),
                    (write.now + retention::CANCELLED).as_millis()
                ])?;
            write.ends(*id, queue, lane, state_code(from), state::CANCELLED);
            Ok(Some(Cancelled::Done))
        }
        State::Running => {
            write
                .connection
                .prepare_cached(
                    "UPDATE flexiq_jobs SET cancel_requested = 1 WHERE id = ?1 AND cancel_requested = 0",
                )?
                .execute([id])?;
            write.news.called.extend(worker.map(WorkerId::from_bytes));
            Ok(Some(Cancelled::Requested))
        }
        ended => Ok(Some(Cancelled::AlreadyEnded(ended))),
    }
}

/// At most this many pending jobs of a partition are cancelled in one step.
const MOST_SWEPT: usize = 1_000;

/// Cancels what runs of a partition, and what is pending, a part of it at a time.
pub(super) fn cancel_partition(write: &mut Write<'_>, task: &str, partition: &str) -> Tried<Swept> {
    let mut swept = Swept::default();
    for (queue, lane) in lanes_of(write.connection, task, partition)? {
        for id in jobs_of(write, queue, lane, state::RUNNING, i64::MAX)? {
            cancel(write, id)?;
            swept.requested += 1;
        }
        for state in [state::READY, state::SCHEDULED] {
            // One more than may be, so that it is known whether any are left.
            let room = MOST_SWEPT - swept.done as usize;
            let pending = jobs_of(write, queue, lane, state, room as i64 + 1)?;
            swept.more |= pending.len() > room;
            for id in pending.into_iter().take(room) {
                cancel(write, id)?;
                swept.done += 1;
            }
        }
    }
    Ok(swept)
}

fn jobs_of(
    write: &Write<'_>,
    queue: QueueId,
    lane: LaneId,
    state: u8,
    most: i64,
) -> rusqlite::Result<Vec<JobId>> {
    let sql = match state {
        state::READY => "SELECT id FROM flexiq_jobs WHERE ?1 >= 0 AND lane = ?2 AND state = 1 LIMIT ?3",
        state::SCHEDULED => {
            "SELECT id FROM flexiq_jobs WHERE queue = ?1 AND lane = ?2 AND state = 0 LIMIT ?3"
        }
        _ => "SELECT id FROM flexiq_jobs WHERE queue = ?1 AND lane = ?2 AND state = 2 LIMIT ?3",
    };
    write
        .connection
        .prepare_cached(sql)?
        .query_map(params![queue, lane, most], |row| Ok(JobId::from_bytes(read_id(row, 0)?)))?
        .collect()
}

/// Whether a job of this worker was cancelled and the worker has not learned it.
pub(super) fn is_called(connection: &Connection, worker: WorkerId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(include_str!("sql/cancel_called.sql"))?
        .query_row([worker.as_bytes()], |_| Ok(()))
        .optional()
        .map(|found| found.is_some())
}
