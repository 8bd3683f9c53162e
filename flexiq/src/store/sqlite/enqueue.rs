//! enqueue: stores a batch of one queue, all or none, and says what is ready or when it will be.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{OptionalExtension, params};

use super::admission::Admission;
use super::codes::{release_code, scheduled_code, state};
use super::failure::Tried;
use super::lanes::{LaneId, QueueId};
use super::replace::replace;
use super::unique;
use super::write::Write;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::job::{JobId, ScheduledReason};
use crate::name::Name;
use crate::store::types::{Enqueue, Enqueued, NewJob};
use std::time::Duration;

/// Bodies above this lie in a table of their own, so that a transition of their job does not rewrite them.
pub(super) const LARGE: usize = 512;

pub(super) const PAYLOAD: u8 = 0;
pub(super) const VALUE: u8 = 1;

pub(super) fn enqueue(write: &mut Write<'_>, batch: &Enqueue) -> Tried<Vec<Enqueued>> {
    let queue = write.lanes.queue(write.connection, &batch.queue)?;
    let mut of_queue = Admission::of_queue(write, batch, queue)?;
    let mut of_partitions: HashMap<LaneId, Admission> = HashMap::new();
    let mut answers = Vec::with_capacity(batch.jobs.len());
    // Keys that are taken for a time.
    let mut timed = 0;
    for job in &batch.jobs {
        let lane = write.lanes.lane(write.connection, (&batch.queue, queue), &job.task, &job.partition)?;
        if !job.partition.is_empty()
            && let Entry::Vacant(entry) = of_partitions.entry(lane)
        {
            entry.insert(Admission::of_partition(write, batch, queue, job, lane)?);
        }
        let answer = enqueue_one(write, &batch.queue, queue, lane, job)?;
        if !answer.is_duplicate {
            timed += usize::from(job.unique.is_some_and(|unique| unique.release.is_timed()));
            of_queue.admit(|max_pending, pending| Error::QueueFull {
                queue: batch.queue.to_string(),
                max_pending,
                pending,
            })?;
            if let Some(of_partition) = of_partitions.get_mut(&lane) {
                of_partition.admit(|max_pending, pending| Error::PartitionFull {
                    task: job.task.to_string(),
                    partition: job.partition.clone(),
                    max_pending,
                    pending,
                })?;
            }
        }
        answers.push(answer);
    }
    if timed > 0 {
        // So that forgetting keeps up with any rate of calls.
        unique::forget_over(write, queue, 2 * timed)?;
    }
    Ok(answers)
}

fn enqueue_one(
    write: &mut Write<'_>,
    queue: &Name,
    queue_id: QueueId,
    lane: LaneId,
    job: &NewJob,
) -> Tried<Enqueued> {
    if let Some(unique) = &job.unique
        && !is_there(write, job.id)?
        && let Some(owner) = unique::owner(write, queue_id, unique.key.as_bytes())?
    {
        touch_in_vain(write, queue_id, lane, job);
        return replace(write, (queue, queue_id), lane, job, (owner, unique.on_duplicate));
    }
    let now = write.now;
    let placed = Placed::of(job, now);
    let state = placed.state;
    let is_large = job.payload.bytes.len() > LARGE;
    let stored = write.connection.prepare_cached(include_str!("sql/enqueue.sql"))?.execute(params![
        job.id.as_bytes(),
        queue_id,
        lane,
        state,
        scheduled_code(ScheduledReason::Delay),
        -i32::from(job.priority),
        placed.due.as_millis(),
        now.as_millis(),
        placed.expires.map(Timestamp::as_millis),
        job.outset.timeout.map(millis),
        job.outset.max_retries,
        job.outset.result_ttl.map(millis),
        job.payload.codec,
        (!is_large).then_some(&job.payload.bytes),
        job.unique.as_ref().map(|unique| unique.key.as_bytes()),
        job.unique.map(|unique| release_code(unique.release)),
    ])?;
    if stored == 0 {
        touch_in_vain(write, queue_id, lane, job);
        return find_duplicate(write, queue, job);
    }
    if let Some(unique) = &job.unique {
        unique::take(write, queue_id, job.id, unique)?;
    }
    if is_large {
        write_body(write, job.id.as_bytes(), PAYLOAD, &job.payload.bytes)?;
    }
    write.adds(queue_id, lane, state);
    placed.put_in(write, queue);
    Ok(Enqueued::new(job.id))
}

/// Where a call places its job.
pub(super) struct Placed {
    pub(super) state: u8,
    pub(super) due: Timestamp,
    pub(super) expires: Option<Timestamp>,
}

impl Placed {
    pub(super) fn of(job: &NewJob, now: Timestamp) -> Self {
        let due = job.due.from(now);
        let (state, due) = if due <= now { (state::READY, now) } else { (state::SCHEDULED, due) };
        Self { state, due, expires: job.expires.map(|expires| due + expires) }
    }

    /// Tells at which moments time alone will move the job.
    pub(super) fn put_in(&self, write: &mut Write<'_>, queue: &Name) {
        if self.state == state::SCHEDULED {
            write.news.put_in(queue, self.due);
        }
        if let Some(expires) = self.expires {
            write.news.put_in(queue, expires);
        }
    }
}

/// Whether a job of this id is stored.
pub(super) fn is_there(write: &Write<'_>, id: JobId) -> rusqlite::Result<bool> {
    write.connection.prepare_cached("SELECT 1 FROM flexiq_jobs WHERE id = ?1")?.exists([id.as_bytes()])
}

/// The partition of a job that is not stored may have been made for nothing.
fn touch_in_vain(write: &mut Write<'_>, queue: QueueId, lane: LaneId, job: &NewJob) {
    if !job.partition.is_empty() {
        write.ledger.touches(queue, lane);
    }
}

/// The job that is there under this id, if it is the same call.
fn find_duplicate(write: &mut Write<'_>, queue: &Name, job: &NewJob) -> Tried<Enqueued> {
    let lane = write
        .connection
        .prepare_cached("SELECT lane FROM flexiq_jobs WHERE id = ?1")?
        .query_row([job.id.as_bytes()], |row| row.get(0))?;
    let there = write.lanes.name(write.connection, lane)?;
    if there.queue == *queue && there.task == job.task {
        return Ok(Enqueued::there(job.id));
    }
    Err(Error::Invalid {
        what: "job id".into(),
        given: format!("{} for task {} in queue {queue}", job.id, job.task),
        accepted: format!("another id: this one is a job of task {} in queue {}", there.task, there.queue),
    }
    .into())
}

/// Stores a large body apart from its job.
pub(super) fn write_body(write: &Write<'_>, id: &[u8; 16], part: u8, bytes: &[u8]) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("INSERT OR REPLACE INTO flexiq_bodies (id, part, bytes) VALUES (?1, ?2, ?3)")?
        .execute(params![id, part, bytes])
        .map(drop)
}

/// Reads a body that was stored apart from its job.
pub(super) fn read_body(
    connection: &rusqlite::Connection,
    id: &[u8; 16],
    part: u8,
) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT bytes FROM flexiq_bodies WHERE id = ?1 AND part = ?2")?
        .query_row(params![id, part], |row| row.get(0))
        .optional()
}

/// Whole milliseconds for a column, rounded up like every moment.
pub(super) fn millis(duration: Duration) -> i64 {
    (Timestamp::from_millis(0) + duration).as_millis()
}

/// The duration of a column.
pub(super) fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
