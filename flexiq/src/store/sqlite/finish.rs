//! finish: frees the lease of a run that has ended, and moves its job by what became of it.
//!
//! Only the worker that holds the newest run may do so. A job that was cancelled while it ran ends as cancelled,
//! unless the run succeeded: whatever else its worker says would mean that it runs again, or blames it for having been
//! stopped. Such an end moves no counter.

use rusqlite::{OptionalExtension, params};

use super::call::called_at;
use super::codes::{dead_code, scheduled_code, state, write_value};
use super::enqueue::{LARGE, VALUE, write_body};
use super::failure::Tried;
use super::gates::gate_name;
use super::lanes::{LaneId, QueueId};
use super::retention;
use super::story::{keep_notes, keep_setback};
use super::write::Write;
use crate::clock::Timestamp;
use crate::job::{DeadReason, Due, Held, Hold, ScheduledReason, Transition, Value};
use crate::name::Name;
use crate::store::story::Blow;
use crate::store::types::{Finish, Finished, LeaseId, WorkerId};
use std::time::Duration;

/// Successes that are stored in one statement: the ids in `finish_succeed_alike.sql`.
const TOGETHER: usize = 25;

/// Finishes runs, in their order.
pub(super) fn finish(
    write: &mut Write<'_>,
    worker: WorkerId,
    queue_name: &Name,
    queue: QueueId,
    ends: &[Finish],
) -> Tried<Vec<Finished>> {
    let mut finished = Vec::with_capacity(ends.len());
    let groups: Vec<&[Finish]> = ends.chunk_by(|one, other| are_alike(write, one, other)).collect();
    for alike in groups {
        for ends in alike.chunks(TOGETHER) {
            if ends.len() > 1 && succeed_alike(write, worker, queue, ends)? {
                finished.extend(ends.iter().map(|_| Finished::Done));
                continue;
            }
            for end in ends {
                finished.push(finish_one(write, worker, queue_name, queue, end)?);
            }
        }
    }
    Ok(finished)
}

fn finish_one(
    write: &mut Write<'_>,
    worker: WorkerId,
    queue_name: &Name,
    queue: QueueId,
    end: &Finish,
) -> Tried<Finished> {
    // Looked at before the end, which takes the lease.
    let lane = match (end.hold, &end.notes) {
        (None, None) => None,
        _ => held(write, worker, queue, end.lease)?.map(|held| held.lane),
    };
    if let (Some(notes), Some(_)) = (&end.notes, lane) {
        keep_notes(write, end.lease.job.as_bytes(), end.lease.run, notes)?;
    }
    let finished = carry_out(write, worker, queue_name, queue, end)?;
    if let (Finished::Done, Some(hold), Some(lane)) = (finished, end.hold, lane) {
        put_hold(write, queue_name, queue, lane, hold)?;
    }
    Ok(finished)
}

/// Lets nothing start of what a run has held.
fn put_hold(
    write: &mut Write<'_>,
    queue_name: &Name,
    queue: QueueId,
    lane: LaneId,
    hold: Hold,
) -> rusqlite::Result<()> {
    let name = write.lanes.name(write.connection, lane)?;
    let gate = match hold.what {
        Held::Queue => String::new(),
        Held::Partition if !name.partition.is_empty() => gate_name(&name.task, &name.partition),
        Held::Task | Held::Partition => name.task.to_string(),
    };
    let until = write.now + hold.length;
    write
        .connection
        .prepare_cached(
            "INSERT INTO flexiq_holds (queue, gate, until) VALUES (?1, ?2, ?3)
             ON CONFLICT (queue, gate) DO UPDATE SET until = max(until, excluded.until)",
        )?
        .execute(params![queue, gate, until.as_millis()])?;
    write.ledger.touches(queue, lane);
    write.news.put_in(queue_name, until);
    Ok(())
}

fn carry_out(
    write: &mut Write<'_>,
    worker: WorkerId,
    queue_name: &Name,
    queue: QueueId,
    Finish { lease, transition, setback, .. }: &Finish,
) -> Tried<Finished> {
    let (lease, id) = (*lease, lease.job.as_bytes());
    if let Transition::Succeed { value, keep } = transition {
        return succeed(write, worker, queue, lease, value, *keep);
    }
    let Some(Leased { lane, is_cancelled, failures }) = held(write, worker, queue, lease)? else {
        return Ok(Finished::LeaseLost);
    };
    let to = match transition {
        other if is_cancelled => cancel(write, id, last_error(other))?,
        Transition::Schedule { reason, due, error } => {
            schedule(write, queue_name, id, *reason, *due, error.as_deref())?
        }
        Transition::Kill { reason, error } => kill(write, id, *reason, error.as_deref())?,
        Transition::Release => put_back(write, queue_name, id, 0)?,
        Transition::PutBack => put_back(write, queue_name, id, 1)?,
        Transition::Cancel | Transition::Succeed { .. } => cancel(write, id, None)?,
    };
    if !is_cancelled && let Some((death, words)) = blow(transition) {
        let (at, run, kind) = (write.now, lease.run, *setback);
        keep_setback(write, id, &Blow { at, run, failures, kind, death, words })?;
    }
    if to >= state::SUCCEEDED {
        write.ends(*id, queue, lane, state::RUNNING, to);
    } else {
        write.moves(queue, lane, state::RUNNING, to);
    }
    Ok(Finished::Done)
}

/// A job that a worker runs.
pub(super) struct Leased {
    lane: LaneId,
    is_cancelled: bool,
    failures: u32,
}

/// A job, if the worker holds its newest run.
pub(super) fn held(
    write: &Write<'_>,
    worker: WorkerId,
    queue: QueueId,
    lease: LeaseId,
) -> rusqlite::Result<Option<Leased>> {
    write
        .connection
        .prepare_cached(include_str!("sql/finish_held.sql"))?
        .query_row(params![lease.job.as_bytes(), worker.as_bytes(), lease.run, queue], |row| {
            Ok(Leased { lane: row.get(0)?, is_cancelled: row.get(1)?, failures: row.get(2)? })
        })
        .optional()
}

/// Whether two ends differ in their jobs alone: successes without a value, of one lane and of runs of the same number.
fn are_alike(write: &Write<'_>, one: &Finish, other: &Finish) -> bool {
    let lane = write.lanes.leased(one.lease.job);
    matches!(one.transition, Transition::Succeed { value: Value::Unit, .. })
        && (one.hold, other.hold) == (None, None)
        && one.notes.is_none()
        && other.notes.is_none()
        && one.transition == other.transition
        && one.lease.run == other.lease.run
        && lane.is_some()
        && lane == write.lanes.leased(other.lease.job)
}

/// Stores successes that are alike in one statement, which spares a third of the work; false if not all are held, and
/// then it has done nothing.
fn succeed_alike(
    write: &mut Write<'_>,
    worker: WorkerId,
    queue: QueueId,
    ends: &[Finish],
) -> rusqlite::Result<bool> {
    let Finish { lease, transition: Transition::Succeed { keep, .. }, .. } = &ends[0] else {
        return Ok(false);
    };
    let Some(lane) = write.lanes.leased(lease.job) else { return Ok(false) };
    write.connection.prepare_cached("SAVEPOINT flexiq_alike")?.execute([])?;
    let moved = {
        let mut statement = write.connection.prepare_cached(include_str!("sql/finish_succeed_alike.sql"))?;
        statement.raw_bind_parameter(1, worker.as_bytes())?;
        statement.raw_bind_parameter(2, lease.run)?;
        statement.raw_bind_parameter(3, lane)?;
        statement.raw_bind_parameter(4, queue)?;
        statement.raw_bind_parameter(5, write.now.as_millis())?;
        statement.raw_bind_parameter(6, (write.now + *keep).as_millis())?;
        for place in 0..TOGETHER {
            statement.raw_bind_parameter(7 + place, ends.get(place).map(|end| end.lease.job.as_bytes()))?;
        }
        statement.raw_execute()?
    };
    if moved != ends.len() {
        write.connection.execute_batch("ROLLBACK TO flexiq_alike; RELEASE flexiq_alike")?;
        return Ok(false);
    }
    write.connection.prepare_cached("RELEASE flexiq_alike")?.execute([])?;
    for end in ends {
        write.lanes.finishes(end.lease.job);
        write.ends(*end.lease.job.as_bytes(), queue, lane, state::RUNNING, state::SUCCEEDED);
    }
    Ok(true)
}

/// The most frequent end by far: one statement, where the lane is remembered from the claim.
fn succeed(
    write: &mut Write<'_>,
    worker: WorkerId,
    queue: QueueId,
    lease: LeaseId,
    value: &Value,
    keep: Duration,
) -> Tried<Finished> {
    let id = lease.job.as_bytes();
    let lane = match write.lanes.finishes(lease.job) {
        Some(lane) => lane,
        None => match held(write, worker, queue, lease)? {
            Some(held) => held.lane,
            None => return Ok(Finished::LeaseLost),
        },
    };
    let (kind, bytes) = write_value(value);
    let is_large = bytes.len() > LARGE;
    // Without RETURNING, here and below: it would make SQLite keep a journal of each statement.
    let moved = write.connection.prepare_cached(include_str!("sql/finish_succeed.sql"))?.execute(params![
        id,
        worker.as_bytes(),
        lease.run,
        lane,
        write.now.as_millis(),
        (write.now + keep).as_millis(),
        kind,
        (!is_large).then_some(&bytes),
        queue,
    ])?;
    if moved == 0 {
        return Ok(Finished::LeaseLost);
    }
    if is_large {
        write_body(write, id, VALUE, &bytes)?;
    }
    write.ends(*id, queue, lane, state::RUNNING, state::SUCCEEDED);
    Ok(Finished::Done)
}

fn kill(write: &Write<'_>, id: &[u8; 16], reason: DeadReason, error: Option<&str>) -> rusqlite::Result<u8> {
    let is_deferral = reason == DeadReason::Deferrals;
    write.connection.prepare_cached(include_str!("sql/finish_kill.sql"))?.execute(params![
        id,
        dead_code(reason),
        u8::from(!is_deferral),
        u8::from(is_deferral),
        error,
        write.now.as_millis(),
        (write.now + retention::DEAD).as_millis(),
    ])?;
    Ok(state::DEAD)
}

/// Makes a job ready at its old place. What is known to expire does so unless it starts.
fn put_back(write: &mut Write<'_>, queue: &Name, id: &[u8; 16], deferrals: u8) -> rusqlite::Result<u8> {
    let expires: Option<i64> = write
        .connection
        .prepare_cached(
            "UPDATE flexiq_jobs SET state = 1, until = NULL, deferrals = deferrals + ?2 WHERE id = ?1
             RETURNING expires_at",
        )?
        .query_row(params![id, deferrals], |row| row.get(0))?;
    if let Some(expires) = expires {
        write.news.put_in(queue, Timestamp::from_millis(expires));
    }
    Ok(state::READY)
}

fn schedule(
    write: &mut Write<'_>,
    queue: &Name,
    id: &[u8; 16],
    reason: ScheduledReason,
    due: Due,
    error: Option<&str>,
) -> rusqlite::Result<u8> {
    let called = match reason {
        ScheduledReason::Limit => called_at(write, id)?,
        _ => None,
    };
    let due = called.map_or(due.from(write.now), |called| called.min(due.from(write.now)));
    let is_deferral = matches!(reason, ScheduledReason::Deferral | ScheduledReason::Limit);
    let to = if due <= write.now { state::READY } else { state::SCHEDULED };
    // One that was called before it could wait keeps its old place.
    let keeps_place = to == state::READY && called.is_some();
    let due = due.max(write.now);
    let expires: Option<i64> =
        write.connection.prepare_cached(include_str!("sql/finish_schedule.sql"))?.query_row(
            params![
                id,
                to,
                scheduled_code(reason),
                (!keeps_place).then(|| due.as_millis()),
                u8::from(!is_deferral),
                u8::from(is_deferral),
                error,
            ],
            |row| row.get(0),
        )?;
    if to == state::SCHEDULED {
        write.news.put_in(queue, due);
    }
    if let Some(expires) = expires {
        write.news.put_in(queue, Timestamp::from_millis(expires));
    }
    Ok(to)
}

/// Ends a running job as cancelled.
fn cancel(write: &Write<'_>, id: &[u8; 16], error: Option<&str>) -> rusqlite::Result<u8> {
    write.connection.prepare_cached(include_str!("sql/finish_cancel.sql"))?.execute(params![
        id,
        error,
        write.now.as_millis(),
        (write.now + retention::CANCELLED).as_millis(),
    ])?;
    Ok(state::CANCELLED)
}

/// Whether a run that ends so sets its job back: the death of the job, if it is, and what happened, in words.
fn blow(transition: &Transition) -> Option<(Option<DeadReason>, &[u8])> {
    let (death, error) = match transition {
        Transition::Schedule { reason: ScheduledReason::Deferral | ScheduledReason::Limit, .. } => {
            return None;
        }
        Transition::Schedule { error, .. } => (None, error),
        Transition::Kill { reason, error } => (Some(*reason), error),
        _ => return None,
    };
    Some((death, error.as_deref().unwrap_or_default().as_bytes()))
}

/// What a failed run had to say.
fn last_error(transition: &Transition) -> Option<&str> {
    match transition {
        Transition::Schedule { error, .. } | Transition::Kill { error, .. } => error.as_deref(),
        _ => None,
    }
}
