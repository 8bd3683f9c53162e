//! What is only read: a job, its arguments, how it has ended, counts, and who is known.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Row};

use super::codes::{read_id, read_state, read_value};
use super::enqueue::{PAYLOAD, VALUE, read_body};
use super::lanes::read_name;
use crate::clock::Timestamp;
use crate::job::{Job, JobFailure, JobId, State, Value};
use crate::name::Name;
use crate::store::story::read_progress;
use crate::store::types::{Counts, Payload, Stored, TaskCounts};

pub(super) fn job(connection: &Connection, id: JobId) -> rusqlite::Result<Option<Job>> {
    connection
        .prepare_cached(include_str!("sql/read_job.sql"))?
        .query_row([id.as_bytes()], read_job)
        .optional()
}

/// The encoded arguments of a job.
pub(super) fn payload(connection: &Connection, id: JobId) -> rusqlite::Result<Option<Payload>> {
    let row: Option<(u8, Option<Vec<u8>>)> = connection
        .prepare_cached("SELECT codec, payload FROM flexiq_jobs WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((codec, bytes)) = row else { return Ok(None) };
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => read_body(connection, id.as_bytes(), PAYLOAD)?.unwrap_or_default(),
    };
    Ok(Some(Payload { codec, bytes }))
}

fn read_job(row: &Row<'_>) -> rusqlite::Result<Job> {
    let partition: String = row.get(3)?;
    let rank: i32 = row.get(6)?;
    let runs = row.get(7)?;
    let progress: Option<Vec<u8>> = row.get(18)?;
    Ok(Job {
        id: JobId::from_bytes(read_id(row, 0)?),
        queue: row.get(1)?,
        task: row.get(2)?,
        partition: (!partition.is_empty()).then_some(partition),
        state: read_state(row.get(4)?, row.get(5)?)?,
        priority: i8::try_from(-rank).unwrap_or(0),
        runs,
        failures: row.get(8)?,
        deferrals: row.get(9)?,
        losses: row.get(10)?,
        last_error: row.get(11)?,
        progress: progress.and_then(|progress| read_progress(&progress, runs)),
        cancel_requested: row.get::<_, u8>(12)? > 0,
        enqueued_at: time(row.get(13)?),
        due_at: time(row.get(14)?),
        expires_at: row.get::<_, Option<_>>(15)?.map(time),
        started_at: row.get::<_, Option<_>>(16)?.map(time),
        ended_at: row.get::<_, Option<_>>(17)?.map(time),
    })
}

fn time(ms: i64) -> SystemTime {
    Timestamp::from_millis(ms).into()
}

/// How a job has ended, and the queue it lies in. `None` if it has not, or is not there.
pub(super) fn stored(connection: &Connection, id: JobId) -> rusqlite::Result<Option<Stored>> {
    let Some(job) = job(connection, id)? else { return Ok(None) };
    if !job.state.is_ended() {
        return Ok(None);
    }
    if job.state == State::Succeeded {
        return value(connection, id).map(|value| Some(Stored::Value(value)));
    }
    Ok(Some(Stored::Failure(JobFailure {
        id,
        task: job.task,
        state: job.state,
        failures: job.failures,
        deferrals: job.deferrals,
        losses: job.losses,
        last_error: job.last_error,
    })))
}

fn value(connection: &Connection, id: JobId) -> rusqlite::Result<Value> {
    let (kind, bytes): (u8, Option<Vec<u8>>) = connection
        .prepare_cached("SELECT value_kind, value FROM flexiq_jobs WHERE id = ?1")?
        .query_row([id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => read_body(connection, id.as_bytes(), VALUE)?.unwrap_or_default(),
    };
    read_value(kind, bytes)
}

pub(super) fn counts(connection: &Connection) -> rusqlite::Result<Counts> {
    let tasks = connection
        .prepare_cached(include_str!("sql/read_counts.sql"))?
        .query_map([], |row| {
            Ok(TaskCounts {
                queue: row.get(0)?,
                task: row.get(1)?,
                scheduled: count(row, 2)?,
                ready: count(row, 3)?,
                running: count(row, 4)?,
                succeeded: count(row, 5)?,
                dead: count(row, 6)?,
                cancelled: count(row, 7)?,
                expired: count(row, 8)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Counts { tasks })
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|jobs| u64::try_from(jobs).unwrap_or(0))
}

pub(super) fn declarations(connection: &Connection) -> rusqlite::Result<Vec<(Name, String)>> {
    connection
        .prepare_cached("SELECT task, declaration FROM flexiq_tasks ORDER BY task")?
        .query_map([], |row| Ok((read_name("task", row.get_ref(0)?.as_str()?)?, row.get(1)?)))?
        .collect()
}
