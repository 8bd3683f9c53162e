//! What time alone does to jobs: reap, expire, promote, and open partitions; and whether schedules are due. Every claim does it for its queue, every beat for all.
//!
//! Each is bounded, so that a flood of due jobs never stops the store; what is left is done by the next step.

use rusqlite::{Connection, params};

use super::codes::{dead_code, read_id, state};
use super::guard;
use super::lanes::{LaneId, QueueId, read_name};
use super::partitions::reopen;
use super::retention;
use super::story::keep_setback;
use super::write::Write;
use crate::clock::Timestamp;
use crate::job::{DeadReason, SetbackKind};
use crate::name::Name;
use crate::policy::is_poison;
use crate::store::story::Blow;

/// At most this many jobs expire or become ready in one step,
const MOST_MOVED: usize = 1_000;
/// and this many leases are reaped.
const MOST_REAPED: usize = 100;

/// What a bound has left undone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    /// Jobs that have expired still stand among the ready.
    pub(super) has_expired: bool,
    /// Other moves are due.
    pub(super) has_more: bool,
    /// Schedules are due, of which the caller tells.
    pub(super) has_ticks: bool,
}

/// Moves what is overdue in one queue.
pub(super) fn keep_house(write: &mut Write<'_>, queue: QueueId) -> rusqlite::Result<Left> {
    let moments = Moments::read(write.connection, queue)?;
    let now = write.now.as_millis();
    let is_past = |moment: Option<i64>| moment.is_some_and(|moment| moment <= now);
    let (expires, due, lapses) = (is_past(moments.expiry), is_past(moments.due), is_past(moments.lapse));
    if is_past(moments.held) {
        end_holds(write, queue)?;
    }
    let mut left = Left { has_ticks: is_past(moments.tick), ..Left::default() };
    // Expiry after reaping and before promotion: what is given back, or becomes due, when its time is over does not start.
    if lapses && guard::may_reap(write)? {
        left.has_more |= reap(write, queue)?;
        write.shows_ready()?;
    }
    if expires || lapses {
        left.has_expired |= expire(write, queue, state::SCHEDULED)?;
        left.has_expired |= expire(write, queue, state::READY)?;
        write.shows_ready()?;
    }
    if due {
        left.has_more |= promote(write, queue)?;
    }
    if moments.reopens || is_past(moments.opening) {
        left.has_more |= reopen(write, queue)?;
    }
    Ok(left)
}

/// Forgets holds that are over. What they held opens by itself.
fn end_holds(write: &Write<'_>, queue: QueueId) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached(
            "DELETE FROM flexiq_holds WHERE queue = ?1 AND gate IN
             (SELECT gate FROM flexiq_holds WHERE queue = ?1 AND until <= ?2 ORDER BY until LIMIT ?3)",
        )?
        .execute(params![queue, write.now.as_millis(), MOST_MOVED as i64])
        .map(drop)
}

/// Ends waiting jobs whose time to start is over.
fn expire(write: &mut Write<'_>, queue: QueueId, from: u8) -> rusqlite::Result<bool> {
    let now = write.now;
    let expired: Vec<([u8; 16], LaneId)> = write
        .connection
        .prepare_cached(include_str!("sql/house_expire.sql"))?
        .query_map(
            params![
                queue,
                from,
                now.as_millis(),
                MOST_MOVED as i64,
                (now + retention::CANCELLED).as_millis()
            ],
            |row| Ok((read_id(row, 0)?, row.get(1)?)),
        )?
        .collect::<rusqlite::Result<_>>()?;
    for (id, lane) in &expired {
        write.ends(*id, queue, *lane, from, state::EXPIRED);
    }
    Ok(expired.len() == MOST_MOVED)
}

/// Makes scheduled jobs ready that are due. They are as old as their due time.
fn promote(write: &mut Write<'_>, queue: QueueId) -> rusqlite::Result<bool> {
    let promoted: Vec<LaneId> = write
        .connection
        .prepare_cached(include_str!("sql/house_promote.sql"))?
        .query_map(params![queue, write.now.as_millis(), MOST_MOVED as i64], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for lane in &promoted {
        write.moves(queue, *lane, state::SCHEDULED, state::READY);
    }
    Ok(promoted.len() == MOST_MOVED)
}

/// A lease that has run out.
struct Lapsed {
    id: [u8; 16],
    lane: LaneId,
    is_release: bool,
    losses: u32,
    max_losses: u32,
    is_cancelled: bool,
    run: u32,
    failures: u32,
    worker: [u8; 16],
}

/// Takes jobs back from workers that did not renew their leases.
fn reap(write: &mut Write<'_>, queue: QueueId) -> rusqlite::Result<bool> {
    let lapsed: Vec<Lapsed> = write
        .connection
        .prepare_cached(include_str!("sql/house_lapsed.sql"))?
        .query_map(params![queue, write.now.as_millis(), MOST_REAPED as i64], |row| {
            Ok(Lapsed {
                id: read_id(row, 0)?,
                lane: row.get(1)?,
                is_release: row.get(2)?,
                losses: row.get(3)?,
                max_losses: row.get(4)?,
                is_cancelled: row.get(5)?,
                run: row.get(6)?,
                failures: row.get(7)?,
                worker: read_id(row, 8)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    for lease in &lapsed {
        reap_one(write, queue, lease)?;
    }
    Ok(lapsed.len() == MOST_REAPED)
}

fn reap_one(write: &mut Write<'_>, queue: QueueId, lease: &Lapsed) -> rusqlite::Result<()> {
    let now = write.now;
    let losses = lease.losses.saturating_add(u32::from(!lease.is_release && !lease.is_cancelled));
    let (to, reason, keep) = if lease.is_cancelled {
        (state::CANCELLED, 0, Some(retention::CANCELLED))
    } else if !lease.is_release && is_poison(losses, lease.max_losses) {
        (state::DEAD, dead_code(DeadReason::Losses), Some(retention::DEAD))
    } else {
        (state::READY, 0, None)
    };
    write.connection.prepare_cached(include_str!("sql/house_reap.sql"))?.execute(params![
        lease.id,
        to,
        reason,
        losses,
        keep.map(|_| now.as_millis()),
        keep.map(|keep| (now + keep).as_millis()),
    ])?;
    if losses > lease.losses {
        let (at, kind, words) = (now, SetbackKind::Loss, &lease.worker[..]);
        let death = (to == state::DEAD).then_some(DeadReason::Losses);
        let blow = Blow { at, run: lease.run, failures: lease.failures, kind, death, words };
        keep_setback(write, &lease.id, &blow)?;
    }
    match keep {
        Some(_) => write.ends(lease.id, queue, lease.lane, state::RUNNING, to),
        None => write.moves(queue, lease.lane, state::RUNNING, to),
    }
    Ok(())
}

/// When time alone will next move a job of a queue.
struct Moments {
    due: Option<i64>,
    expiry: Option<i64>,
    lapse: Option<i64>,
    /// When time opens the gate of a partition,
    opening: Option<i64>,
    /// and when a hold is over.
    held: Option<i64>,
    /// When a schedule is due.
    tick: Option<i64>,
    /// Partitions are left of which a limit was changed.
    reopens: bool,
}

impl Moments {
    fn read(connection: &Connection, queue: QueueId) -> rusqlite::Result<Self> {
        connection.prepare_cached(include_str!("sql/house_moments.sql"))?.query_row([queue], |row| {
            Ok(Self {
                due: row.get(0)?,
                expiry: row.get(1)?,
                lapse: row.get(2)?,
                opening: row.get(3)?,
                held: row.get(4)?,
                tick: row.get(5)?,
                reopens: row.get(6)?,
            })
        })
    }
}

/// The next moment at which time alone may make something startable or end it.
pub(super) fn next_moment(connection: &Connection, queue: QueueId) -> rusqlite::Result<Option<Timestamp>> {
    let Moments { due, expiry, lapse, opening, held, tick, .. } = Moments::read(connection, queue)?;
    let lapse = match lapse {
        Some(lapse) => Some(lapse.max(guard::reap_after(connection)?)),
        None => None,
    };
    Ok([due, expiry, lapse, opening, held, tick].into_iter().flatten().min().map(Timestamp::from_millis))
}

/// The next moment of every queue that has one.
pub(super) fn all_moments(connection: &Connection) -> rusqlite::Result<Vec<(Name, Timestamp)>> {
    let mut moments = Vec::new();
    for (queue, name) in all_queues(connection)? {
        moments.extend(next_moment(connection, queue)?.map(|moment| (name, moment)));
    }
    Ok(moments)
}

/// The queues that are known.
pub(super) fn all_queues(connection: &Connection) -> rusqlite::Result<Vec<(QueueId, Name)>> {
    connection
        .prepare_cached("SELECT queue, name FROM flexiq_queues ORDER BY name")?
        .query_map([], |row| Ok((row.get(0)?, read_name("queue", row.get_ref(1)?.as_str()?)?)))?
        .collect()
}

/// Queue and task of all of which something is ready.
pub(super) fn all_waiting(connection: &Connection) -> rusqlite::Result<Vec<(Name, Name)>> {
    connection
        .prepare_cached(include_str!("sql/house_waiting.sql"))?
        .query_map([], |row| {
            let queue = read_name("queue", row.get_ref(0)?.as_str()?)?;
            Ok((queue, read_name("task", row.get_ref(1)?.as_str()?)?))
        })?
        .collect()
}
