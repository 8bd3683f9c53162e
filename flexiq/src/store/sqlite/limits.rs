//! limit and limits: what is set at runtime for a queue, a task or a partition, and what holds.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::codes::{read_rates, unreadable, write_rates};
use super::failure::Tried;
use super::gates::{gate_name, parts_of, scope};
use super::house::all_waiting;
use super::lanes::read_name;
use super::partitions::{lanes_of, reopen_later};
use super::write::Write;
use crate::name::Name;
use crate::policy::Rate;
use crate::store::types::{Change, Limits, Overrides, Scope, Standing};

/// Changes what is set, and has those rung for that may start now.
pub(super) fn limit(write: &mut Write<'_>, of: &Scope, change: &Change) -> Tried<()> {
    let (scope, name) = match of {
        Scope::Queue(queue) => (scope::QUEUE, queue.to_string()),
        Scope::Task(task) => (scope::TASK, task.to_string()),
        Scope::EachPartition(task) => (scope::EACH_PARTITION, task.to_string()),
        Scope::Partition(task, partition) => (scope::PARTITION, gate_name(task, partition)),
    };
    if *change == Change::Paused(false) {
        end_hold(write, scope, &name)?;
    }
    write
        .connection
        .prepare_cached("INSERT OR IGNORE INTO flexiq_limits (scope, name) VALUES (?1, ?2)")?
        .execute(params![scope, name])?;
    let set = |sql: &str, value: &dyn rusqlite::ToSql| {
        write.connection.prepare_cached(sql)?.execute(params![scope, name, value])
    };
    match change {
        Change::MaxConcurrent(jobs) => {
            set("UPDATE flexiq_limits SET set_max_concurrent = ?3 WHERE scope = ?1 AND name = ?2", jobs)?
        }
        Change::Rates(rates) => set(
            "UPDATE flexiq_limits SET set_rates = ?3 WHERE scope = ?1 AND name = ?2",
            &rates.as_deref().map(write_rates),
        )?,
        Change::MaxPending(jobs) => set(
            "UPDATE flexiq_limits SET set_max_pending = ?3 WHERE scope = ?1 AND name = ?2",
            &jobs.map(|jobs| i64::try_from(jobs).unwrap_or(i64::MAX)),
        )?,
        Change::Paused(is_paused) => {
            set("UPDATE flexiq_limits SET is_paused = ?3 WHERE scope = ?1 AND name = ?2", is_paused)?
        }
    };
    forget_empty(write, scope, &name)?;
    Ok(ring_for(write, scope, &name)?)
}

/// Ends what a run has held.
fn end_hold(write: &Write<'_>, scope: u8, name: &str) -> rusqlite::Result<()> {
    let sql = match scope {
        scope::QUEUE => {
            "DELETE FROM flexiq_holds WHERE gate = '' AND queue =
             (SELECT queue FROM flexiq_queues WHERE name = ?1)"
        }
        _ => "DELETE FROM flexiq_holds WHERE gate = ?1 AND queue IN (SELECT queue FROM flexiq_queues)",
    };
    write.connection.prepare_cached(sql)?.execute([name]).map(drop)
}

/// Forgets a row that says nothing any more.
pub(super) fn forget_empty(write: &Write<'_>, scope: u8, name: &str) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached(include_str!("sql/limits_forget_empty.sql"))?
        .execute(params![scope, name])
        .map(drop)
}

/// Has the bells set right of all that waits behind a gate that has changed.
pub(super) fn ring_for(write: &mut Write<'_>, scope: u8, name: &str) -> rusqlite::Result<()> {
    write.shows_ready()?;
    write.news.is_room_anywhere = true;
    let task = match (scope, parts_of(name)) {
        (scope::PARTITION, Some((task, partition))) => {
            for (queue, lane) in lanes_of(write.connection, task, partition)? {
                write.resettle(queue, lane)?;
            }
            task
        }
        (scope::EACH_PARTITION, _) => {
            reopen_later(write.connection, name)?;
            name
        }
        _ => name,
    };
    let is_behind = |(queue, of): &(Name, Name)| match scope {
        scope::QUEUE => queue.as_str() == task,
        _ => of.as_str() == task,
    };
    let waiting = all_waiting(write.connection)?.into_iter().filter(is_behind);
    write.news.changed.extend(waiting);
    Ok(())
}

/// The `max_pending` that was set for a queue or a partition.
pub(super) fn set_max_pending(
    connection: &Connection,
    scope: u8,
    name: &str,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT set_max_pending FROM flexiq_limits WHERE scope = ?1 AND name = ?2")?
        .query_row(params![scope, name], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// All that has a limit or a pause, sorted by scope.
pub(super) fn limits(connection: &Connection) -> rusqlite::Result<Vec<Standing>> {
    let mut standings: Vec<Standing> = connection
        .prepare_cached(include_str!("sql/limits_read.sql"))?
        .query_map([], read_standing)?
        .collect::<rusqlite::Result<_>>()?;
    standings.sort_by(|one, other| one.scope.cmp(&other.scope));
    Ok(standings)
}

fn read_standing(row: &Row<'_>) -> rusqlite::Result<Standing> {
    let max_pending = |column| {
        row.get::<_, Option<i64>>(column).map(|jobs| jobs.map(|jobs| u64::try_from(jobs).unwrap_or(0)))
    };
    Ok(Standing {
        scope: read_scope(row.get(0)?, row.get_ref(1)?.as_str()?)?,
        declared: Limits {
            max_concurrent: row.get(2)?,
            rates: rates(row, 3)?.unwrap_or_default(),
            max_pending: max_pending(4)?,
        },
        overrides: Overrides {
            max_concurrent: row.get(5)?,
            rates: rates(row, 6)?,
            max_pending: max_pending(7)?,
        },
        is_paused: row.get(8)?,
    })
}

/// What is limited, by the two columns that name it.
pub(super) fn read_scope(scope: u8, name: &str) -> rusqlite::Result<Scope> {
    Ok(match (scope, parts_of(name)) {
        (scope::QUEUE, _) => Scope::Queue(read_name("queue", name)?),
        (scope::TASK, _) => Scope::Task(read_name("task", name)?),
        (scope::EACH_PARTITION, _) => Scope::EachPartition(read_name("task", name)?),
        (scope::PARTITION, Some((task, partition))) => {
            Scope::Partition(read_name("task", task)?, partition.into())
        }
        (other, _) => return Err(unreadable(format!("limits of scope {other}"))),
    })
}

/// Rates of a column; `None` for null.
pub(super) fn rates(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Vec<Rate>>> {
    row.get_ref(column)?.as_str_or_null()?.map(read_rates).transpose()
}
