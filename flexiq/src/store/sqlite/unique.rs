//! unique: which job has each unique key of a queue, and until when.
//!
//! A key is freed through its owner alone: by the end or the start of that job, by time, or when the job is deleted by hand. A
//! job that lost its key long ago frees nothing. Where no key is taken, all of this costs a verb one look.

use rusqlite::{OptionalExtension, params};

use super::codes::{release, release_code};
use super::lanes::QueueId;
use super::write::Write;
use crate::clock::Timestamp;
use crate::job::JobId;
use crate::store::unique::Unique;

/// Jobs whose keys are freed in one statement: the ids in `unique_free.sql`.
const TOGETHER: usize = 25;

/// The job that has a key now.
pub(super) fn owner(write: &Write<'_>, queue: QueueId, key: &[u8; 16]) -> rusqlite::Result<Option<JobId>> {
    write
        .connection
        .prepare_cached(
            "SELECT job FROM flexiq_unique
             WHERE queue = ?1 AND key = ?2 AND (is_bound = 1 OR until > ?3)",
        )?
        .query_row(params![queue, key, write.now.as_millis()], |row| row.get(0).map(JobId::from_bytes))
        .optional()
}

/// A job that is stored now takes its key, which nobody has.
pub(super) fn take(write: &Write<'_>, queue: QueueId, job: JobId, unique: &Unique) -> rusqlite::Result<()> {
    let code = release_code(unique.release);
    let until = unique.release.is_timed().then(|| write.now + unique.release.held_for());
    write
        .connection
        .prepare_cached(
            "INSERT OR REPLACE INTO flexiq_unique (queue, key, job, release, is_bound, until)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            queue,
            unique.key.as_bytes(),
            job.as_bytes(),
            code,
            code != release::AFTER,
            until.map(Timestamp::as_millis),
        ])
        .map(drop)
}

/// A job that begins anew takes its key again, which nobody else has.
pub(super) fn take_again(
    write: &Write<'_>,
    queue: QueueId,
    job: JobId,
    (key, release): ([u8; 16], u8),
) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached(include_str!("sql/unique_take_again.sql"))?
        .execute(params![queue, key, job.as_bytes(), release])
        .map(drop)
}

/// Frees the keys of jobs that start, where a start frees them.
pub(super) fn free_started(write: &Write<'_>, jobs: &[JobId]) -> rusqlite::Result<()> {
    free(write, jobs, release::AT_START)
}

/// Frees the keys of all jobs that this verb has ended.
pub(super) fn free_ended(write: &Write<'_>) -> rusqlite::Result<()> {
    free(write, &write.news.ended, release::AT_END)
}

/// Frees the keys of jobs, from the kind of release on that is named. What time still holds is free by time alone from now on.
fn free(write: &Write<'_>, jobs: &[JobId], from: u8) -> rusqlite::Result<()> {
    if jobs.is_empty() || !is_any_taken(write)? {
        return Ok(());
    }
    for sql in [include_str!("sql/unique_free.sql"), include_str!("sql/unique_unbind.sql")] {
        let mut statement = write.connection.prepare_cached(sql)?;
        for jobs in jobs.chunks(TOGETHER) {
            statement.raw_bind_parameter(1, write.now.as_millis())?;
            statement.raw_bind_parameter(2, from)?;
            for place in 0..TOGETHER {
                statement.raw_bind_parameter(3 + place, jobs.get(place).map(JobId::as_bytes))?;
            }
            statement.raw_execute()?;
        }
    }
    Ok(())
}

fn is_any_taken(write: &Write<'_>) -> rusqlite::Result<bool> {
    write.connection.prepare_cached("SELECT 1 FROM flexiq_unique LIMIT 1")?.exists([])
}

/// Frees the key of a job that is deleted by hand, also where time would hold it.
pub(super) fn free_deleted(write: &Write<'_>, job: JobId) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("DELETE FROM flexiq_unique WHERE job = ?1")?
        .execute([job.as_bytes()])
        .map(drop)
}

/// Forgets at most so many keys of a queue that time has freed, the first first.
pub(super) fn forget_over(write: &Write<'_>, queue: QueueId, most: usize) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached(include_str!("sql/unique_over.sql"))?
        .execute(params![queue, write.now.as_millis(), most as i64])
        .map(drop)
}
