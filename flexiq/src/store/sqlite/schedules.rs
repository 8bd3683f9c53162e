//! schedule, schedules and tick: what is enqueued by the clock.
//!
//! The next moment of each schedule stands among those of its queue. Whoever claims then, or beats, is told that it is due,
//! and sends the tick that follows.

use rusqlite::{OptionalExtension, params};

use super::failure::Tried;
use super::house::{all_waiting, next_moment};
use super::kept_schedule::{Kept, count, find, keep, read, read_seen};
use super::lanes::{QueueId, read_name};
use super::room::enqueue_or_undo;
use super::write::Write;
use crate::name::Name;
use crate::policy::Seen;
use crate::store::schedules::{
    DueTick, MOST_SCHEDULES, MOST_TOLD, Planning, Schedule, TOLD_FOR, Tick, Ticked, too_many,
};
use crate::store::types::{Enqueue, Hello};

pub(super) fn schedule(write: &mut Write<'_>, queue: &Name, name: &Name, planning: Planning) -> Tried<()> {
    match planning {
        Planning::Set(schedule) => {
            let id = write.lanes.queue(write.connection, queue)?;
            let before = find(write.connection, id, name)?;
            if before.is_none() && count(write.connection, id)? >= MOST_SCHEDULES {
                return Err(too_many(queue).into());
            }
            Ok(put(write, (queue, id), name, *schedule, before, true)?)
        }
        Planning::Removed => {
            let Some(id) = write.lanes.find_queue(write.connection, queue)? else { return Ok(()) };
            write
                .connection
                .prepare_cached(
                    "DELETE FROM flexiq_schedules
                     WHERE queue = ?1 AND name = ?2 AND (is_set = 1 OR asleep_since IS NOT NULL)",
                )?
                .execute(params![id, &**name])?;
            Ok(settle(write, name)?)
        }
        Planning::Paused(is_paused) => {
            let Some(id) = write.lanes.find_queue(write.connection, queue)? else { return Ok(()) };
            let Some(kept) = find(write.connection, id, name)? else { return Ok(()) };
            if kept.is_paused == is_paused {
                return Ok(());
            }
            // What it has passed over is not made up for.
            let seen = if is_paused { kept.seen } else { Seen::Since(write.now) };
            Ok(keep(write, (queue, id), name, Kept { is_paused, seen, ..kept }.told_next())?)
        }
    }
}

/// A schedule is set or declared. With the cron that it had, it keeps the tick that it has reached.
fn put(
    write: &mut Write<'_>,
    queue: (&Name, QueueId),
    name: &str,
    schedule: Schedule,
    before: Option<Kept>,
    is_set: bool,
) -> rusqlite::Result<()> {
    let now = write.now;
    let begun = |schedule| Kept {
        schedule,
        is_set,
        is_paused: false,
        seen: Seen::Since(now),
        last: None,
        last_skipped: None,
        wanted_at: None,
        asleep_since: None,
    };
    let kept = match before {
        None => begun(schedule).told_next(),
        Some(before) if before.schedule.cron != schedule.cron => {
            let Kept { is_paused, last, last_skipped, .. } = before;
            Kept { is_paused, last, last_skipped, ..begun(schedule) }.told_next()
        }
        Some(before) if before.asleep_since.is_some() => {
            Kept { schedule, is_set, asleep_since: None, ..before }.told_next()
        }
        Some(before) => Kept { schedule, is_set, ..before },
    };
    keep(write, queue, name, kept)
}

/// The word of the youngest living worker that links a task becomes the one that holds on its cron.
pub(super) fn settle(write: &mut Write<'_>, name: &str) -> rusqlite::Result<()> {
    let declared: Option<(Option<String>, Option<String>)> = write
        .connection
        .prepare_cached(include_str!("sql/schedule_declared.sql"))?
        .query_row([name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let mut declared = match declared {
        Some((Some(queue), Some(definition))) => Some((read_name("queue", &queue)?, read(&definition)?)),
        _ => None,
    };
    let known: Vec<(QueueId, String)> = write
        .connection
        .prepare_cached(
            "SELECT queue, queues.name FROM flexiq_schedules JOIN flexiq_queues AS queues USING (queue)
             WHERE flexiq_schedules.name = ?1",
        )?
        .query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (id, queue) in known {
        let queue = read_name("queue", &queue)?;
        let Some(kept) = find(write.connection, id, name)? else { continue };
        let here = declared.take_if(|(home, _)| *home == queue);
        match here {
            _ if kept.is_set => {}
            Some((_, schedule)) => put(write, (&queue, id), name, schedule, Some(kept), false)?,
            None if kept.asleep_since.is_none() => {
                let asleep_since = Some(write.now);
                keep(write, (&queue, id), name, Kept { asleep_since, ..kept }.told_next())?;
            }
            None => {}
        }
    }
    if let Some((queue, schedule)) = declared {
        let id = write.lanes.queue(write.connection, &queue)?;
        put(write, (&queue, id), name, schedule, None, false)?;
    }
    Ok(())
}

/// Writes down the crons that a worker declares.
pub(super) fn declare(write: &mut Write<'_>, hello: &Hello) -> rusqlite::Result<()> {
    let mut insert = write.connection.prepare_cached(
        "INSERT INTO flexiq_declared_schedules (name, worker, queue, definition) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for declared in &hello.tasks {
        if let Some(schedule) = &declared.schedule {
            write.lanes.queue(write.connection, &declared.queue)?;
            let (name, queue) = (&*declared.task, &*declared.queue);
            insert.execute(params![name, hello.worker.as_bytes(), queue, schedule.to_json()])?;
        }
    }
    Ok(())
}

/// Forgets the crons that a worker declared.
pub(super) fn drop_declared(write: &Write<'_>, worker: &[u8; 16]) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("DELETE FROM flexiq_declared_schedules WHERE worker = ?1")?
        .execute([worker])
        .map(drop)
}

/// Tells of the schedules of a queue that are due, and forgets those that have slept for long.
pub(super) fn tell_due(
    write: &Write<'_>,
    (queue, id): (&Name, QueueId),
    ticks: &mut Vec<DueTick>,
) -> rusqlite::Result<()> {
    let now = write.now;
    write
        .connection
        .prepare_cached(
            "DELETE FROM flexiq_schedules
             WHERE queue = ?1 AND wanted_at <= ?2 AND asleep_since IS NOT NULL",
        )?
        .execute(params![id, now.as_millis()])?;
    let mut due: Vec<DueTick> = write
        .connection
        .prepare_cached(include_str!("sql/schedules_due.sql"))?
        .query_map(params![id, now.as_millis(), MOST_TOLD as i64, (now + TOLD_FOR).as_millis()], |row| {
            let Schedule { cron, catch_up, .. } = read(row.get_ref(1)?.as_str()?)?;
            let name = read_name("schedule", row.get_ref(0)?.as_str()?)?;
            Ok(DueTick { queue: queue.clone(), name, cron, catch_up, seen: read_seen(row, 2)?, now })
        })?
        .collect::<rusqlite::Result<_>>()?;
    due.sort_by(|one, other| one.name.cmp(&other.name));
    ticks.extend(due);
    Ok(())
}

pub(super) fn tick(write: &mut Write<'_>, tick: Tick) -> Tried<Ticked> {
    let Tick { due, next, job, max_pending } = tick;
    let Some(id) = write.lanes.find_queue(write.connection, &due.queue)? else { return Ok(Ticked::Late) };
    let Some(kept) = find(write.connection, id, &due.name)? else { return Ok(Ticked::Late) };
    let is_quiet = kept.is_paused || kept.asleep_since.is_some();
    if is_quiet || kept.schedule.cron != due.cron || kept.seen != due.seen {
        return Ok(Ticked::Late);
    }
    let Kept { mut last, mut last_skipped, .. } = kept;
    let mut ticked = Ticked::Done;
    if let (Some(job), Seen::Tick(moment)) = (job, kept.seen) {
        let jobs = vec![kept.schedule.job(job)];
        let batch = Enqueue { queue: due.queue.clone(), jobs, max_pending, producer: None };
        match enqueue_or_undo(write, &batch)? {
            Ok(_) => last = Some(moment),
            Err(_) => (ticked, last_skipped) = (Ticked::Skipped, Some(moment)),
        }
    }
    let advanced = Kept { seen: Seen::Tick(next), last, last_skipped, ..kept }.told_next();
    keep(write, (&due.queue, id), &due.name, advanced)?;
    // Later than the moment at which another would have been told: nobody need wake for that. What time opens is put in by the
    // look at each task that waits.
    write.shows_ready()?;
    write.news.moments.push((due.queue, next_moment(write.connection, id)?));
    write.news.waiting.extend(all_waiting(write.connection)?);
    Ok(ticked)
}
