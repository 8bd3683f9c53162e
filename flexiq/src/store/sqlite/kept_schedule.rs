//! A schedule as it is kept: its row, written and read.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::codes::unreadable;
use super::lanes::{QueueId, read_name};
use super::write::Write;
use crate::clock::Timestamp;
use crate::name::Name;
use crate::policy::Seen;
use crate::store::explanation::Origin;
use crate::store::schedules::{KEPT_ASLEEP, Schedule, Standby};

/// A schedule, and where it stands.
pub(super) struct Kept {
    pub(super) schedule: Schedule,
    pub(super) is_set: bool,
    pub(super) is_paused: bool,
    pub(super) seen: Seen,
    pub(super) last: Option<Timestamp>,
    pub(super) last_skipped: Option<Timestamp>,
    /// When a worker is told of it, unless it is paused; or when it is forgotten.
    pub(super) wanted_at: Option<Timestamp>,
    pub(super) asleep_since: Option<Timestamp>,
}

impl Kept {
    /// It is told of when what it shows is due. One that sleeps is forgotten at its moment.
    pub(super) fn told_next(self) -> Self {
        let (Seen::Since(moment) | Seen::Tick(moment)) = self.seen;
        let wanted_at = match self.asleep_since {
            Some(since) => Some(since + KEPT_ASLEEP),
            None => (!self.is_paused).then_some(moment),
        };
        Self { wanted_at, ..self }
    }
}

/// All schedules, sorted by name and queue.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Standby>> {
    connection
        .prepare_cached(include_str!("sql/schedules_read.sql"))?
        .query_map([], |row| {
            let kept = read_kept(row)?;
            Ok(Standby {
                queue: read_name("queue", row.get_ref(9)?.as_str()?)?,
                name: read_name("schedule", row.get_ref(10)?.as_str()?)?,
                schedule: kept.schedule,
                origin: if kept.is_set { Origin::Set } else { Origin::Declared },
                seen: kept.seen,
                last: kept.last,
                last_skipped: kept.last_skipped,
                is_paused: kept.is_paused,
                is_asleep: kept.asleep_since.is_some(),
            })
        })?
        .collect()
}

pub(super) fn count(connection: &Connection, queue: QueueId) -> rusqlite::Result<usize> {
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM flexiq_schedules WHERE queue = ?1")?
        .query_row([queue], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

pub(super) fn find(connection: &Connection, queue: QueueId, name: &str) -> rusqlite::Result<Option<Kept>> {
    connection
        .prepare_cached(include_str!("sql/schedule_find.sql"))?
        .query_row(params![queue, name], read_kept)
        .optional()
}

/// Writes a schedule down, and puts its next moment among those of its queue.
pub(super) fn keep(
    write: &mut Write<'_>,
    (queue, id): (&Name, QueueId),
    name: &str,
    kept: Kept,
) -> rusqlite::Result<()> {
    let (is_planned, seen) = match kept.seen {
        Seen::Since(moment) => (false, moment),
        Seen::Tick(tick) => (true, tick),
    };
    write.connection.prepare_cached(include_str!("sql/schedule_keep.sql"))?.execute(params![
        id,
        name,
        kept.schedule.to_json(),
        kept.is_set,
        kept.is_paused,
        is_planned,
        seen.as_millis(),
        kept.last.map(Timestamp::as_millis),
        kept.last_skipped.map(Timestamp::as_millis),
        kept.wanted_at.map(Timestamp::as_millis),
        kept.asleep_since.map(Timestamp::as_millis),
    ])?;
    if let Some(moment) = kept.wanted_at {
        write.news.put_in(queue, moment);
    }
    Ok(())
}

fn read_kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let moment = |column| row.get::<_, Option<i64>>(column).map(|moment| moment.map(Timestamp::from_millis));
    Ok(Kept {
        schedule: read(row.get_ref(0)?.as_str()?)?,
        is_set: row.get(1)?,
        is_paused: row.get(2)?,
        seen: read_seen(row, 3)?,
        last: moment(5)?,
        last_skipped: moment(6)?,
        wanted_at: moment(7)?,
        asleep_since: moment(8)?,
    })
}

/// What two columns show: whether it is planned, and the moment.
pub(super) fn read_seen(row: &Row<'_>, column: usize) -> rusqlite::Result<Seen> {
    let moment = Timestamp::from_millis(row.get(column + 1)?);
    Ok(if row.get(column)? { Seen::Tick(moment) } else { Seen::Since(moment) })
}

pub(super) fn read(definition: &str) -> rusqlite::Result<Schedule> {
    Schedule::from_json(definition).ok_or_else(|| unreadable("a schedule of another form".into()))
}
