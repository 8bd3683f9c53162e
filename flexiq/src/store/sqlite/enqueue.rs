//! enqueue: stores a batch of one queue, all or none, and says what is ready or when it will be.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{OptionalExtension, params};

use super::codes::{scheduled_code, state};
use super::failure::Tried;
use super::gates::{gate_name, scope};
use super::lanes::{LaneId, QueueId};
use super::limits::set_max_pending;
use super::room::kept;
use super::write::Write;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::job::ScheduledReason;
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
    for job in &batch.jobs {
        let lane = write.lanes.lane(write.connection, (&batch.queue, queue), &job.task, &job.partition)?;
        if !job.partition.is_empty()
            && let Entry::Vacant(entry) = of_partitions.entry(lane)
        {
            entry.insert(Admission::of_partition(write, batch, queue, job, lane)?);
        }
        let answer = enqueue_one(write, &batch.queue, queue, lane, job)?;
        if !answer.is_duplicate {
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
    Ok(answers)
}

/// How many new jobs a queue or a partition still takes in. Those that are refused undo their whole batch.
struct Admission {
    /// Without `max_pending` there is no bound, and nothing was counted.
    bound: Option<Bound>,
}

struct Bound {
    max_pending: i64,
    /// Before this batch.
    pending: i64,
    /// For producers that stand before this one.
    kept: i64,
    new: i64,
}

impl Admission {
    fn of_queue(write: &Write<'_>, batch: &Enqueue, queue: QueueId) -> rusqlite::Result<Self> {
        let set = set_max_pending(write.connection, scope::QUEUE, &batch.queue)?;
        let Some(max_pending) = set.or(batch.max_pending.map(number)) else {
            return Ok(Self { bound: None });
        };
        let written: i64 = write
            .connection
            .prepare_cached("SELECT pending FROM flexiq_queues WHERE queue = ?1")?
            .query_row([queue], |row| row.get(0))?;
        let pending = written + write.ledger.pending(queue);
        let kept = kept(write, queue, "", batch.producer)?;
        Ok(Self { bound: Some(Bound { max_pending, pending, kept, new: 0 }) })
    }

    fn of_partition(
        write: &Write<'_>,
        batch: &Enqueue,
        queue: QueueId,
        job: &NewJob,
        lane: LaneId,
    ) -> rusqlite::Result<Self> {
        let name = gate_name(&job.task, &job.partition);
        let set = set_max_pending(write.connection, scope::PARTITION, &name)?;
        let declared = job.max_pending_per_partition.map(number);
        let Some(max_pending) = set.or(declared) else { return Ok(Self { bound: None }) };
        let written: i64 = write
            .connection
            .prepare_cached("SELECT scheduled + ready FROM flexiq_lanes WHERE lane = ?1")?
            .query_row([lane], |row| row.get(0))?;
        let pending = written + write.ledger.pending_of(lane);
        let kept = kept(write, queue, &name, batch.producer)?;
        Ok(Self { bound: Some(Bound { max_pending, pending, kept, new: 0 }) })
    }

    /// Admits one that is new.
    fn admit(&mut self, full: impl FnOnce(u64, u64) -> Error) -> Result<(), Error> {
        let Some(Bound { max_pending, pending, kept, new }) = &mut self.bound else { return Ok(()) };
        *new += 1;
        if *pending + *kept + *new <= *max_pending {
            return Ok(());
        }
        let count = |jobs: i64| u64::try_from(jobs).unwrap_or(0);
        Err(full(count(*max_pending), count(*pending)))
    }
}

pub(super) fn number(jobs: u64) -> i64 {
    i64::try_from(jobs).unwrap_or(i64::MAX)
}

fn enqueue_one(
    write: &mut Write<'_>,
    queue: &Name,
    queue_id: QueueId,
    lane: LaneId,
    job: &NewJob,
) -> Tried<Enqueued> {
    let now = write.now;
    let due = job.due.from(now);
    let (state, due) = if due <= now { (state::READY, now) } else { (state::SCHEDULED, due) };
    let expires = job.expires.map(|expires| due + expires);
    let is_large = job.payload.bytes.len() > LARGE;
    let stored = write.connection.prepare_cached(include_str!("sql/enqueue.sql"))?.execute(params![
        job.id.as_bytes(),
        queue_id,
        lane,
        state,
        scheduled_code(ScheduledReason::Delay),
        -i32::from(job.priority),
        due.as_millis(),
        now.as_millis(),
        expires.map(Timestamp::as_millis),
        job.outset.timeout.map(millis),
        job.outset.max_retries,
        job.outset.result_ttl.map(millis),
        job.payload.codec,
        (!is_large).then_some(&job.payload.bytes),
    ])?;
    if stored == 0 {
        if !job.partition.is_empty() {
            // It may have been made for nothing.
            write.ledger.touches(queue_id, lane);
        }
        return find_duplicate(write, queue, job);
    }
    if is_large {
        write_body(write, job.id.as_bytes(), PAYLOAD, &job.payload.bytes)?;
    }
    write.adds(queue_id, lane, state);
    if state == state::SCHEDULED {
        write.news.put_in(queue, due);
    }
    if let Some(expires) = expires {
        write.news.put_in(queue, expires);
    }
    Ok(Enqueued { id: job.id, is_duplicate: false })
}

/// The job that is there under this id, if it is the same call.
fn find_duplicate(write: &mut Write<'_>, queue: &Name, job: &NewJob) -> Tried<Enqueued> {
    let lane = write
        .connection
        .prepare_cached("SELECT lane FROM flexiq_jobs WHERE id = ?1")?
        .query_row([job.id.as_bytes()], |row| row.get(0))?;
    let there = write.lanes.name(write.connection, lane)?;
    if there.queue == *queue && there.task == job.task {
        return Ok(Enqueued { id: job.id, is_duplicate: true });
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
