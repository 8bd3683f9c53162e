//! room: the lines of producers that wait until a queue, or a partition of it, takes their jobs.
//!
//! A line is in the file, so that producers of all processes stand in one. Room is kept for those who stand before: an
//! enqueue finds what they want as taken. The hub tells those of this process whose turn it is (`rooms.rs`).

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::admission::number;
use super::enqueue::{enqueue, is_there};
use super::failure::{Failure, Tried};
use super::gates::{gate_name, parts_of, scope};
use super::lanes::{Lanes, QueueId};
use super::limits::set_max_pending;
use super::news::{News, Stand};
use super::unique;
use super::write::Write;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::name::Name;
use crate::store::KEPT_IN_LINE;
use crate::store::types::{Enqueue, Enqueued, NewJob, ProducerId};

/// At most so many are told at once; those behind them are told as these come in.
const MOST_TOLD: i64 = 1_000;

/// Stores a batch, or lets its producer stand in line for the room that it lacks.
pub(super) fn enqueue_or_stand(
    write: &mut Write<'_>,
    batch: &Enqueue,
    producer: ProducerId,
) -> Tried<Result<Vec<Enqueued>>> {
    let full = match enqueue_or_undo(write, batch)? {
        Ok(stored) => {
            leave(write, producer)?;
            return Ok(Ok(stored));
        }
        Err(full) => full,
    };
    let want = Want::of(write, batch, &full)?;
    want.refuse_if_never()?;
    stand(write, batch, producer, want)?;
    Ok(Err(full))
}

/// Stores a batch, or undoes what it has written where there is no room for it; what its caller writes then is not undone.
/// The first that a request does.
pub(super) fn enqueue_or_undo(write: &mut Write<'_>, batch: &Enqueue) -> Tried<Result<Vec<Enqueued>>> {
    let before = write.ledger.clone();
    write.connection.prepare_cached("SAVEPOINT flexiq_room")?.execute([])?;
    let full = match enqueue(write, batch) {
        Ok(stored) => {
            write.connection.prepare_cached("RELEASE flexiq_room")?.execute([])?;
            return Ok(Ok(stored));
        }
        Err(Failure::Refused(full @ (Error::QueueFull { .. } | Error::PartitionFull { .. }))) => full,
        Err(other) => return Err(other),
    };
    write.connection.execute_batch("ROLLBACK TO flexiq_room; RELEASE flexiq_room")?;
    *write.ledger = before;
    *write.news = News::default();
    write.lanes.forget();
    Ok(Err(full))
}

/// What a refused batch wants.
struct Want {
    /// What is full: empty for the queue, or the partition as `task:partition`.
    gate: String,
    /// Its jobs that are new there.
    jobs: u64,
    /// What was declared for it, and what holds.
    declared: Option<u64>,
    max_pending: u64,
}

impl Want {
    fn of(write: &mut Write<'_>, batch: &Enqueue, full: &Error) -> rusqlite::Result<Self> {
        let is_in = |job: &&NewJob| match full {
            Error::PartitionFull { task, partition, .. } => *task == *job.task && *partition == job.partition,
            _ => true,
        };
        let (gate, declared, max_pending) = match full {
            Error::PartitionFull { task, partition, max_pending, .. } => {
                let first = batch.jobs.iter().find(is_in);
                let declared = first.and_then(|job| job.max_pending_per_partition);
                (gate_name(task, partition), declared, *max_pending)
            }
            Error::QueueFull { max_pending, .. } => (String::new(), batch.max_pending, *max_pending),
            _ => (String::new(), batch.max_pending, u64::MAX),
        };
        let jobs = new_jobs(write, batch)?.into_iter().filter(is_in).count() as u64;
        Ok(Self { gate, jobs, declared, max_pending })
    }

    /// An error where the batch is larger than all the room that there can be.
    fn refuse_if_never(&self) -> Result<()> {
        if self.jobs <= self.max_pending {
            return Ok(());
        }
        Err(crate::store::never_fits(self.jobs, self.max_pending))
    }
}

/// The jobs of a batch that would be stored if there were room.
fn new_jobs<'a>(write: &mut Write<'_>, batch: &'a Enqueue) -> rusqlite::Result<Vec<&'a NewJob>> {
    let queue = write.lanes.queue(write.connection, &batch.queue)?;
    let (mut ids, mut keys) = (HashSet::new(), HashSet::new());
    let mut new = Vec::with_capacity(batch.jobs.len());
    for job in &batch.jobs {
        if is_there(write, job.id)? || ids.contains(&job.id) {
            continue;
        }
        if let Some(unique) = &job.unique {
            let is_taken = unique::owner(write, queue, unique.key.as_bytes())?.is_some();
            if is_taken || !keys.insert(unique.key) {
                continue;
            }
        }
        ids.insert(job.id);
        new.push(job);
    }
    Ok(new)
}

/// Stands in line, at the place that it has there or at the end, and leaves any other.
fn stand(write: &mut Write<'_>, batch: &Enqueue, producer: ProducerId, want: Want) -> rusqlite::Result<()> {
    let queue = write.lanes.queue(write.connection, &batch.queue)?;
    let has_left = write
        .connection
        .prepare_cached("DELETE FROM flexiq_producers WHERE producer = ?1 AND (queue, gate) <> (?2, ?3)")?
        .execute(params![producer.as_bytes(), queue, want.gate])?;
    write.news.is_room_anywhere |= has_left > 0;
    // Its own place may be over as well: then it stands last.
    forget_gone(write)?;
    write.connection.prepare_cached(include_str!("sql/producer_stands.sql"))?.execute(params![
        producer.as_bytes(),
        queue,
        want.gate,
        number(want.jobs),
        want.declared.map(number),
        (write.now + KEPT_IN_LINE).as_millis(),
    ])?;
    write.news.stands.push(Stand { producer, queue: batch.queue.clone(), gate: want.gate });
    Ok(())
}

/// Leaves the line; those behind may have room now.
pub(super) fn leave(write: &mut Write<'_>, producer: ProducerId) -> rusqlite::Result<()> {
    let has_left = write
        .connection
        .prepare_cached("DELETE FROM flexiq_producers WHERE producer = ?1")?
        .execute([producer.as_bytes()])?;
    write.news.is_room_anywhere |= has_left > 0;
    Ok(())
}

/// Takes those out of their lines that have not come again.
pub(super) fn forget_gone(write: &mut Write<'_>) -> rusqlite::Result<()> {
    let gone = write
        .connection
        .prepare_cached("DELETE FROM flexiq_producers WHERE until <= ?1")?
        .execute([write.now.as_millis()])?;
    write.news.is_room_anywhere |= gone > 0;
    Ok(())
}

/// The jobs of those who stand before a producer, or of all that stand in line.
pub(super) fn kept(
    write: &Write<'_>,
    queue: QueueId,
    gate: &str,
    producer: Option<ProducerId>,
) -> rusqlite::Result<i64> {
    write.connection.prepare_cached(include_str!("sql/producers_before.sql"))?.query_row(
        params![queue, gate, write.now.as_millis(), producer.as_ref().map(ProducerId::as_bytes)],
        |row| row.get(0),
    )
}

/// Those who stand in a line and have room now: from the first on, until there is none.
pub(super) fn with_room(
    connection: &Connection,
    lanes: &mut Lanes,
    (name, gate): (&Name, &str),
    now: Timestamp,
) -> rusqlite::Result<Vec<[u8; 16]>> {
    let Some(queue) = lanes.find_queue(connection, name)? else { return Ok(Vec::new()) };
    let set = match gate {
        "" => set_max_pending(connection, scope::QUEUE, name)?,
        gate => set_max_pending(connection, scope::PARTITION, gate)?,
    };
    let mut taken = pending(connection, queue, gate)?;
    let mut found = Vec::new();
    let mut line = connection.prepare_cached(include_str!("sql/producers_in_line.sql"))?;
    let mut rows = line.query(params![queue, gate, now.as_millis(), MOST_TOLD])?;
    while let Some(row) = rows.next()? {
        let (jobs, declared): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
        taken += jobs;
        if set.or(declared).is_some_and(|max_pending| taken > max_pending) {
            break;
        }
        found.push(row.get(0)?);
    }
    Ok(found)
}

/// The pending jobs that are written down.
fn pending(connection: &Connection, queue: QueueId, gate: &str) -> rusqlite::Result<i64> {
    let found = match parts_of(gate) {
        None => connection
            .prepare_cached("SELECT pending FROM flexiq_queues WHERE queue = ?1")?
            .query_row([queue], |row| row.get(0)),
        Some((task, partition)) => connection
            .prepare_cached(
                "SELECT scheduled + ready FROM flexiq_lanes WHERE queue = ?1 AND task = ?2 AND partition = ?3",
            )?
            .query_row(params![queue, task, partition], |row| row.get(0)),
    };
    // Nothing is left of a partition without a row.
    found.optional().map(Option::unwrap_or_default)
}
