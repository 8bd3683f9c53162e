//! cancel: ends a pending job at once, and tells a running one to stop.

use rusqlite::{Connection, OptionalExtension, params};

use super::codes::{read_state, state, state_code};
use super::failure::Tried;
use super::retention;
use super::write::Write;
use crate::job::{JobId, State};
use crate::store::types::{Cancelled, WorkerId};

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

/// Whether a job of this worker was cancelled and the worker has not learned it.
pub(super) fn is_called(connection: &Connection, worker: WorkerId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(include_str!("sql/cancel_called.sql"))?
        .query_row([worker.as_bytes()], |_| Ok(()))
        .optional()
        .map(|found| found.is_some())
}
