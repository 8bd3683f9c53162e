//! tell and story: what runs tell of themselves and how they failed, kept apart from their jobs.

use rusqlite::{Connection, OptionalExtension, params};

use super::enqueue::{read_body, write_body};
use super::failure::Tried;
use super::finish::held;
use super::write::Write;
use crate::job::{JobId, Notes, Story};
use crate::store::story::{Blow, add_lines, add_setback, read_story, write_progress};
use crate::store::tell::Tell;

/// The parts of `flexiq_bodies` that a story has. The first is read with its job, in `read_job.sql`.
const PROGRESS: u8 = 2;
const LOG: u8 = 3;
const SETBACKS: u8 = 4;

/// Keeps what runs tell, of those that this worker holds.
pub(super) fn tell(write: &mut Write<'_>, tell: &Tell) -> Tried<()> {
    let Some(queue) = write.lanes.find_queue(write.connection, &tell.queue)? else { return Ok(()) };
    for (lease, notes) in &tell.runs {
        if held(write, tell.worker, queue, *lease)?.is_some() {
            keep_notes(write, lease.job.as_bytes(), lease.run, notes)?;
        }
    }
    Ok(())
}

/// Keeps what a run tells, which this worker surely holds.
pub(super) fn keep_notes(write: &Write<'_>, id: &[u8; 16], run: u32, notes: &Notes) -> rusqlite::Result<()> {
    begin(write, id)?;
    if let Some(progress) = &notes.progress {
        write_body(write, id, PROGRESS, &write_progress(run, progress))?;
    }
    if !notes.lines.is_empty() {
        let log = read_body(write.connection, id, LOG)?.unwrap_or_default();
        write_body(write, id, LOG, &add_lines(&log, run, &notes.lines))?;
    }
    Ok(())
}

/// Keeps how a run set its job back.
pub(super) fn keep_setback(write: &Write<'_>, id: &[u8; 16], blow: &Blow<'_>) -> rusqlite::Result<()> {
    begin(write, id)?;
    let setbacks = read_body(write.connection, id, SETBACKS)?.unwrap_or_default();
    write_body(write, id, SETBACKS, &add_setback(&setbacks, blow))
}

/// Says of a job that something of it lies apart, which must go with it.
fn begin(write: &Write<'_>, id: &[u8; 16]) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("UPDATE flexiq_jobs SET has_story = 1 WHERE id = ?1 AND has_story = 0")?
        .execute([id])
        .map(drop)
}

/// What is kept of how a job went.
pub(super) fn story(connection: &Connection, id: JobId) -> rusqlite::Result<Option<Story>> {
    let has_story: Option<bool> = connection
        .prepare_cached("SELECT has_story FROM flexiq_jobs WHERE id = ?1")?
        .query_row(params![id.as_bytes()], |row| row.get(0))
        .optional()?;
    Ok(match has_story {
        None => None,
        Some(false) => Some(Story::default()),
        Some(true) => {
            let part = |part| read_body(connection, id.as_bytes(), part).map(Option::unwrap_or_default);
            Some(read_story(&part(LOG)?, &part(SETBACKS)?))
        }
    })
}
