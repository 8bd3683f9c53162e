//! retry and delete: what is done by hand to jobs that have ended.

use rusqlite::{OptionalExtension, params};

use super::codes::{release, state};
use super::failure::Tried;
use super::lanes::{LaneId, QueueId};
use super::prune::delete_bodies;
use super::unique;
use super::write::Write;
use crate::job::JobId;
use crate::store::types::Retried;

/// Makes a dead, cancelled or expired job ready: a new generation, whose budgets are fresh and whose run number goes
/// on, so that a worker of an earlier run can still change nothing.
pub(super) fn retry(write: &mut Write<'_>, job: JobId) -> Tried<Retried> {
    let id = job.as_bytes();
    let Some(Ended { queue, lane, from, key }) = ended(write, id)? else { return Ok(Retried::Untouched) };
    if from == state::SUCCEEDED {
        return Ok(Retried::Untouched);
    }
    if let Some(key) = key.filter(|(_, freed)| *freed != release::AFTER) {
        match unique::owner(write, queue, &key.0)? {
            Some(owner) if owner != job => return Ok(Retried::KeyTaken(owner)),
            _ => unique::take_again(write, queue, job, key)?,
        }
    }
    write
        .connection
        .prepare_cached(include_str!("sql/retry.sql"))?
        .execute(params![id, write.now.as_millis()])?;
    write.moves(queue, lane, from, state::READY);
    Ok(Retried::Done)
}

/// Deletes a job that has ended.
pub(super) fn delete(write: &mut Write<'_>, job: JobId) -> Tried<bool> {
    let id = job.as_bytes();
    let Some(Ended { queue, lane, from, key }) = ended(write, id)? else { return Ok(false) };
    if key.is_some() {
        unique::free_deleted(write, job)?;
    }
    write.connection.prepare_cached("DELETE FROM flexiq_jobs WHERE id = ?1")?.execute([id])?;
    delete_bodies(write, id)?;
    write.ledger.leaves(queue, lane, from);
    Ok(true)
}

/// A job that has ended.
struct Ended {
    queue: QueueId,
    lane: LaneId,
    from: u8,
    /// Its unique key, and what frees it.
    key: Option<([u8; 16], u8)>,
}

fn ended(write: &Write<'_>, id: &[u8; 16]) -> rusqlite::Result<Option<Ended>> {
    write
        .connection
        .prepare_cached(
            "SELECT queue, lane, state, unique_key, release FROM flexiq_jobs WHERE id = ?1 AND state >= 3",
        )?
        .query_row([id], |row| {
            let key: Option<[u8; 16]> = row.get(3)?;
            let key = match key {
                Some(key) => Some((key, row.get(4)?)),
                None => None,
            };
            Ok(Ended { queue: row.get(0)?, lane: row.get(1)?, from: row.get(2)?, key })
        })
        .optional()
}
