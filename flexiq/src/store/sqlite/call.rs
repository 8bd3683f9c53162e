//! A job that waits for a named limit is called: it is due earlier than it was told.

use rusqlite::{OptionalExtension, params};

use super::codes::{scheduled_code, state};
use super::lanes::{LaneId, QueueId, read_name};
use super::write::Write;
use crate::clock::Timestamp;
use crate::job::ScheduledReason;

/// Calls of running jobs are kept for so long: it may take the run as much to end.
const KEPT_MS: i64 = 60 * 60 * 1_000;

/// Makes a job that waits for a limit due at a moment; one whose run has not ended yet, when it has. False if it never
/// comes: it has ended, or waits for something else.
///
/// One that is due at once goes back to its old place, so that it comes before what was ready later.
pub(super) fn call(
    write: &mut Write<'_>,
    job: &[u8; 16],
    due: Timestamp,
    ready_at: Timestamp,
) -> rusqlite::Result<bool> {
    let found: Option<(QueueId, LaneId, u8, u8)> = write
        .connection
        .prepare_cached("SELECT queue, lane, state, reason FROM flexiq_jobs WHERE id = ?1")?
        .query_row([job], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let limit = scheduled_code(ScheduledReason::Limit);
    match found {
        Some((queue, lane, state::SCHEDULED, reason)) if reason == limit => {
            if due > write.now {
                reschedule(write, job, queue, due)?;
            } else {
                make_ready(write, job, queue, lane, ready_at)?;
            }
            Ok(true)
        }
        Some((_, _, state::RUNNING, _)) => {
            write
                .connection
                .prepare_cached("INSERT OR REPLACE INTO flexiq_calls (job, due, at) VALUES (?1, ?2, ?3)")?
                .execute(params![job, due.as_millis(), write.now.as_millis()])?;
            Ok(true)
        }
        // It comes by itself.
        Some((_, _, state::READY, _)) => Ok(true),
        _ => Ok(false),
    }
}

fn make_ready(
    write: &mut Write<'_>,
    job: &[u8; 16],
    queue: QueueId,
    lane: LaneId,
    ready_at: Timestamp,
) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("UPDATE flexiq_jobs SET state = 1, reason = 0, due_at = ?2 WHERE id = ?1")?
        .execute(params![job, ready_at.min(write.now).as_millis()])?;
    write.moves(queue, lane, state::SCHEDULED, state::READY);
    Ok(())
}

fn reschedule(write: &mut Write<'_>, job: &[u8; 16], queue: QueueId, due: Timestamp) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("UPDATE flexiq_jobs SET due_at = ?2 WHERE id = ?1")?
        .execute(params![job, due.as_millis()])?;
    let name = write
        .connection
        .prepare_cached("SELECT name FROM flexiq_queues WHERE queue = ?1")?
        .query_row([queue], |row| read_name("queue", row.get_ref(0)?.as_str()?))?;
    write.news.put_in(&name, due);
    Ok(())
}

/// When a job is due that was called while it ran, if it was.
pub(super) fn called_at(write: &Write<'_>, job: &[u8; 16]) -> rusqlite::Result<Option<Timestamp>> {
    let due: Option<i64> = write
        .connection
        .prepare_cached("DELETE FROM flexiq_calls WHERE job = ?1 RETURNING due")?
        .query_row([job], |row| row.get(0))
        .optional()?;
    Ok(due.map(Timestamp::from_millis))
}

/// Forgets calls of runs that ended otherwise.
pub(super) fn forget_calls(write: &Write<'_>) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("DELETE FROM flexiq_calls WHERE at <= ?1")?
        .execute([write.now.as_millis() - KEPT_MS])
        .map(drop)
}
