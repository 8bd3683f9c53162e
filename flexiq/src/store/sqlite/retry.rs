//! retry and delete: what is done by hand to jobs that have ended.

use rusqlite::{OptionalExtension, params};

use super::codes::state;
use super::failure::Tried;
use super::lanes::{LaneId, QueueId};
use super::prune::delete_bodies;
use super::write::Write;
use crate::job::JobId;

/// Makes a dead, cancelled or expired job ready: a new generation, whose budgets are fresh and whose run number goes
/// on, so that a worker of an earlier run can still change nothing.
pub(super) fn retry(write: &mut Write<'_>, job: JobId) -> Tried<bool> {
    let id = job.as_bytes();
    let Some((queue, lane, from)) = ended(write, id)? else { return Ok(false) };
    if from == state::SUCCEEDED {
        return Ok(false);
    }
    write
        .connection
        .prepare_cached(include_str!("sql/retry.sql"))?
        .execute(params![id, write.now.as_millis()])?;
    write.moves(queue, lane, from, state::READY);
    Ok(true)
}

/// Deletes a job that has ended.
pub(super) fn delete(write: &mut Write<'_>, job: JobId) -> Tried<bool> {
    let id = job.as_bytes();
    let Some((queue, lane, from)) = ended(write, id)? else { return Ok(false) };
    write.connection.prepare_cached("DELETE FROM flexiq_jobs WHERE id = ?1")?.execute([id])?;
    delete_bodies(write, id)?;
    write.ledger.leaves(queue, lane, from);
    Ok(true)
}

/// Queue, lane and state of a job, if it has ended.
fn ended(write: &Write<'_>, id: &[u8; 16]) -> rusqlite::Result<Option<(QueueId, LaneId, u8)>> {
    write
        .connection
        .prepare_cached("SELECT queue, lane, state FROM flexiq_jobs WHERE id = ?1 AND state >= 3")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
}
