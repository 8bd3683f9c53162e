//! What workers declare: the youngest living worker's word holds, also that there is no limit.
//!
//! It is worked out when a worker comes, goes, or is found silent, and kept in `flexiq_limits`, so that a claim asks no
//! worker.

use rusqlite::{OptionalExtension, params};

use super::codes::write_rates;
use super::gates::scope;
use super::guard;
use super::limits::{forget_empty, ring_for};
use super::schedules;
use super::write::Write;
use crate::store::types::{Hello, Limits, WorkerId};

/// Keeps what a worker declares.
pub(super) fn declare(write: &mut Write<'_>, hello: &Hello) -> rusqlite::Result<()> {
    let before = scopes_of(write, hello.worker.as_bytes())?;
    drop_declarations(write, hello.worker.as_bytes())?;
    schedules::declare(write, hello)?;
    let queues = hello.queues.iter().map(|(queue, limits)| (scope::QUEUE, queue, limits));
    let tasks = hello.tasks.iter().flat_map(|declared| {
        let each = (scope::EACH_PARTITION, &declared.task, &declared.per_partition);
        [(scope::TASK, &declared.task, &declared.limits), each]
    });
    for (scope, name, limits) in queues.chain(tasks) {
        let (max_concurrent, rates, max_pending) = columns(limits);
        write.connection.prepare_cached(include_str!("sql/declare.sql"))?.execute(params![
            scope,
            &**name,
            hello.worker.as_bytes(),
            max_concurrent,
            rates,
            max_pending
        ])?;
        settle(write, scope, name)?;
    }
    // What it declared when it registered before, and does not any more.
    before.iter().try_for_each(|(scope, name)| settle(write, *scope, name))
}

/// Forgets a worker and what it declared.
pub(super) fn forget(write: &mut Write<'_>, worker: &[u8; 16]) -> rusqlite::Result<()> {
    let scopes = scopes_of(write, worker)?;
    drop_declarations(write, worker)?;
    write.connection.prepare_cached("DELETE FROM flexiq_workers WHERE worker = ?1")?.execute([worker])?;
    scopes.iter().try_for_each(|(scope, name)| settle(write, *scope, name))
}

/// Lets the declarations of workers lapse that have not beaten for a lease.
///
/// After an outage nobody could beat: then, as with leases, the living beat first.
pub(super) fn notice_deaths(write: &mut Write<'_>) -> rusqlite::Result<()> {
    let now = write.now.as_millis();
    let silent: Option<i64> = write
        .connection
        .prepare_cached(
            "SELECT min(until) FROM flexiq_workers INDEXED BY flexiq_workers_alive WHERE is_alive = 1",
        )?
        .query_row([], |row| row.get(0))?;
    if silent.is_none_or(|until| until > now) || !guard::may_reap(write)? {
        return Ok(());
    }
    let dead: Vec<[u8; 16]> = write
        .connection
        .prepare_cached(
            "UPDATE flexiq_workers SET is_alive = 0 WHERE is_alive = 1 AND until <= ?1 RETURNING worker",
        )?
        .query_map([now], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    dead.iter().try_for_each(|worker| resettle(write, worker))
}

/// Works out anew what holds for all that a worker declares: it has died, or come back.
fn resettle(write: &mut Write<'_>, worker: &[u8; 16]) -> rusqlite::Result<()> {
    scopes_of(write, worker)?.iter().try_for_each(|(scope, name)| settle(write, *scope, name))
}

/// Lets a worker live again that was found silent.
pub(super) fn revive(write: &mut Write<'_>, worker: WorkerId) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("UPDATE flexiq_workers SET is_alive = 1 WHERE worker = ?1")?
        .execute([worker.as_bytes()])?;
    resettle(write, worker.as_bytes())
}

fn scopes_of(write: &Write<'_>, worker: &[u8; 16]) -> rusqlite::Result<Vec<(u8, String)>> {
    write
        .connection
        .prepare_cached("SELECT scope, name FROM flexiq_declarations WHERE worker = ?1")?
        .query_map([worker], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn drop_declarations(write: &Write<'_>, worker: &[u8; 16]) -> rusqlite::Result<()> {
    write
        .connection
        .prepare_cached("DELETE FROM flexiq_declarations WHERE worker = ?1")?
        .execute([worker])?;
    schedules::drop_declared(write, worker)
}

type Columns = (Option<u32>, Option<String>, Option<i64>);

/// The youngest living worker's declaration of one task or queue becomes the one that holds.
fn settle(write: &mut Write<'_>, scope: u8, name: &str) -> rusqlite::Result<()> {
    if scope == scope::TASK {
        schedules::settle(write, name)?;
    }
    let youngest: Option<Columns> = write
        .connection
        .prepare_cached(include_str!("sql/declared_by_youngest.sql"))?
        .query_row(params![scope, name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let (max_concurrent, rates, max_pending) = youngest.unwrap_or_default();
    let changed = write
        .connection
        .prepare_cached(include_str!("sql/declared_holds.sql"))?
        .execute(params![scope, name, max_concurrent, rates, max_pending])?;
    if changed > 0 {
        forget_empty(write, scope, name)?;
        ring_for(write, scope, name)?;
    }
    Ok(())
}

fn columns(limits: &Limits) -> Columns {
    (
        limits.max_concurrent,
        (!limits.rates.is_empty()).then(|| write_rates(&limits.rates)),
        limits.max_pending.map(|jobs| i64::try_from(jobs).unwrap_or(i64::MAX)),
    )
}
