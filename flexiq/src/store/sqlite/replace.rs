//! replace: what a call does to the job that has its unique key, instead of storing one of its own.

use rusqlite::{OptionalExtension, params};

use super::codes::{scheduled_code, state};
use super::enqueue::{LARGE, PAYLOAD, Placed, millis, write_body};
use super::failure::Tried;
use super::lanes::{LaneId, QueueId};
use super::write::Write;
use crate::clock::Timestamp;
use crate::job::{JobId, ScheduledReason};
use crate::name::Name;
use crate::store::other_partition;
use crate::store::types::{Enqueued, NewJob};
use crate::store::unique::OnDuplicate;

/// Answers the job that has the key of a call; while it is pending, with the arguments of that call, if it says so.
pub(super) fn replace(
    write: &mut Write<'_>,
    (queue_name, queue): (&Name, QueueId),
    lane: LaneId,
    call: &NewJob,
    (owner, on_duplicate): (JobId, OnDuplicate),
) -> Tried<Enqueued> {
    let there = Enqueued::there(owner);
    if on_duplicate == OnDuplicate::Keep {
        return Ok(there);
    }
    let Some((owners_lane, state, reason)) = pending(write, owner)? else { return Ok(there) };
    if owners_lane != lane {
        return Err(other_partition(owner).into());
    }
    replace_arguments(write, owner, call)?;
    let is_as_stored = state == state::SCHEDULED && reason == scheduled_code(ScheduledReason::Delay);
    if on_duplicate == OnDuplicate::Postpone && is_as_stored {
        let placed = Placed::of(call, write.now);
        write
            .connection
            .prepare_cached("UPDATE flexiq_jobs SET state = ?2, due_at = ?3, expires_at = ?4 WHERE id = ?1")?
            .execute(params![
                owner.as_bytes(),
                placed.state,
                placed.due.as_millis(),
                placed.expires.map(Timestamp::as_millis),
            ])?;
        write.moves(queue, lane, state, placed.state);
        placed.put_in(write, queue_name);
    }
    Ok(Enqueued { is_replaced: true, ..there })
}

/// Lane, state and reason of a job, if it is pending.
fn pending(write: &Write<'_>, job: JobId) -> rusqlite::Result<Option<(LaneId, u8, u8)>> {
    write
        .connection
        .prepare_cached("SELECT lane, state, reason FROM flexiq_jobs WHERE id = ?1 AND state <= 1")?
        .query_row([job.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
}

/// Gives a job the arguments of a call, and what the call sets for its runs.
fn replace_arguments(write: &Write<'_>, job: JobId, call: &NewJob) -> rusqlite::Result<()> {
    let is_large = call.payload.bytes.len() > LARGE;
    write.connection.prepare_cached(include_str!("sql/replace.sql"))?.execute(params![
        job.as_bytes(),
        call.outset.timeout.map(millis),
        call.outset.max_retries,
        call.outset.result_ttl.map(millis),
        call.payload.codec,
        (!is_large).then_some(&call.payload.bytes),
    ])?;
    if is_large {
        return write_body(write, job.as_bytes(), PAYLOAD, &call.payload.bytes);
    }
    write
        .connection
        .prepare_cached("DELETE FROM flexiq_bodies WHERE id = ?1 AND part = ?2")?
        .execute(params![job.as_bytes(), PAYLOAD])
        .map(drop)
}
