//! acquire and give_back: permits of named limits, which runs hold beside their lease.
//!
//! A job that gets none stands in line. Whatever makes room calls those who are first, in the same step: their permit is
//! reserved, and they are due. A permit ends when it is given back, or lapses like a lease.

use std::collections::BTreeSet;

use rusqlite::{Row, params};

use super::call::{call, called_at, forget_calls};
use super::failure::Tried;
use super::guard::may_reap;
use super::line::{Line, Opening, of_permit};
use super::write::Write;
use crate::policy::{RESERVED, fallback};
use crate::store::permits::{Ask, Asked, GiveBack, PermitId};

/// A step looks at most at this many keys whose time has come.
const MOST_LOOKED_AT: i64 = 1_000;

/// Grants a permit to a run, or puts its job into the line.
pub(super) fn acquire(write: &mut Write<'_>, ask: &Ask) -> Tried<Asked> {
    let PermitId { limit, key, lease } = &ask.permit;
    let job = lease.job.as_bytes();
    // The answer may have been lost: it lasts from this one.
    if renew(write, &ask.permit, (write.now + ask.lease).as_millis())? {
        return Ok(Asked::Granted);
    }
    free_lapsed(write, Some(limit))?;
    let line = Line::new(write.connection, write.now, limit, key);
    let stood = line.place_of(job)?.is_some();
    line.enter(ask, line.end()?)?;
    let is_granted = match line.place_of(job)? {
        Some(own) if own.is_called => line.opening_for_called(&own)? == Opening::Now,
        _ => advance(write, limit, key, Some(job))?,
    };
    if !is_granted {
        return refuse(write, ask).map_err(Into::into);
    }
    line.leave(job)?;
    if stood {
        // It may have been called while it ran; it has what it was called for.
        called_at(write, job)?;
    }
    line.log(&ask.rates)?;
    write
        .connection
        .prepare_cached(
            "INSERT INTO flexiq_permits (name, key, job, run, until) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![limit.as_str(), key, job, lease.run, (write.now + ask.lease).as_millis()])?;
    advance(write, limit, key, None)?;
    Ok(Asked::Granted)
}

fn refuse(write: &mut Write<'_>, ask: &Ask) -> rusqlite::Result<Asked> {
    let PermitId { limit, key, lease } = &ask.permit;
    let job = lease.job.as_bytes();
    let line = Line::new(write.connection, write.now, limit, key);
    line.reserve(job, None)?;
    let (first, own) = (line.first()?, line.place_of(job)?);
    let (Some(first), Some(own)) = (first, own) else { unreachable!("it has just entered the line") };
    let mut opens = None;
    if first.job == own.job {
        opens = line.opening(&own)?.by_time();
        line.opens(opens)?;
    }
    let before = own.place.abs_diff(first.place);
    let due = opens.unwrap_or_else(|| write.now + fallback(before, ask.max_concurrent, &ask.rates));
    line.told(job, due)?;
    Ok(Asked::Refused { due })
}

/// Calls those who are first in line for as long as there is room. Answers whether the one who is here is the next who
/// may have a permit: that one is not called.
fn advance(write: &mut Write<'_>, limit: &str, key: &str, here: Option<&[u8; 16]>) -> rusqlite::Result<bool> {
    let line = Line::new(write.connection, write.now, limit, key);
    for _ in 0..MOST_LOOKED_AT {
        let Some(first) = line.first()? else {
            line.opens(None)?;
            return Ok(false);
        };
        let opening = line.opening(&first)?;
        if here == Some(&first.job) {
            return Ok(opening == Opening::Now);
        }
        line.opens(opening.by_time())?;
        let due = match opening {
            Opening::Now => write.now,
            Opening::At(at) if at != first.due => at,
            // It was told, or waits to be called.
            Opening::At(_) | Opening::ByCall => return Ok(false),
        };
        line.told(&first.job, due)?;
        match call(write, &first.job, due, first.ready_at)? {
            false => line.leave(&first.job)?,
            true if opening == Opening::Now => line.reserve(&first.job, Some(write.now + RESERVED))?,
            true => return Ok(false),
        }
    }
    // So many were gone: the next beat goes on.
    line.opens(Some(write.now))?;
    Ok(false)
}

/// Gives permits back. What is held takes effect before anyone is called.
pub(super) fn give_back(write: &mut Write<'_>, permits: &[GiveBack]) -> Tried<()> {
    let mut touched = BTreeSet::new();
    for GiveBack { ask, hold } in permits {
        let PermitId { limit, key, lease } = &ask.permit;
        let was_held = end(write, &ask.permit)?;
        if let Some(length) = hold {
            let line = Line::new(write.connection, write.now, limit, key);
            line.hold(write.now + *length)?;
            // Its job comes when the hold is over: whoever is first is told so.
            line.leave(lease.job.as_bytes())?;
            line.enter(ask, line.start()?)?;
        }
        if was_held || hold.is_some() {
            touched.insert((limit, key));
        }
    }
    for limit in permits.iter().map(|given| &given.ask.permit.limit).collect::<BTreeSet<_>>() {
        free_lapsed(write, Some(limit))?;
    }
    for (limit, key) in touched {
        advance(write, limit, key, None)?;
    }
    Ok(())
}

fn end(write: &Write<'_>, permit: &PermitId) -> rusqlite::Result<bool> {
    let ended = write
        .connection
        .prepare_cached("DELETE FROM flexiq_permits WHERE name = ?1 AND key = ?2 AND job = ?3 AND run = ?4")?
        .execute(of_permit(permit))?;
    Ok(ended > 0)
}

/// Renews a permit; false if it has lapsed.
pub(super) fn renew(write: &Write<'_>, permit: &PermitId, until: i64) -> rusqlite::Result<bool> {
    let (limit, key, job, run) = of_permit(permit);
    let renewed = write
        .connection
        .prepare_cached(
            "UPDATE flexiq_permits SET until = ?5 WHERE name = ?1 AND key = ?2 AND job = ?3 AND run = ?4",
        )?
        .execute(params![limit, key, job, run, until])?;
    Ok(renewed > 0)
}

/// Does what time alone does to named limits.
pub(super) fn sweep(write: &mut Write<'_>) -> rusqlite::Result<()> {
    forget_calls(write)?;
    free_lapsed(write, None)?;
    let opened: BTreeSet<(String, String)> = write
        .connection
        .prepare_cached("SELECT name, key FROM flexiq_named WHERE opens_at <= ?1 LIMIT ?2")?
        .query_map(params![write.now.as_millis(), MOST_LOOKED_AT], read_key)?
        .collect::<rusqlite::Result<_>>()?;
    for (limit, key) in opened {
        advance(write, &limit, &key, None)?;
    }
    write
        .connection
        .prepare_cached("UPDATE flexiq_named SET held_until = NULL WHERE held_until <= ?1")?
        .execute([write.now.as_millis()])?;
    write
        .connection
        .prepare_cached("DELETE FROM flexiq_named WHERE held_until IS NULL AND opens_at IS NULL")?
        .execute([])
        .map(drop)
}

/// Frees permits that nobody has renewed, and those that were reserved for jobs which did not come: of one limit, or of
/// all.
fn free_lapsed(write: &mut Write<'_>, of: Option<&str>) -> rusqlite::Result<()> {
    let mut freed = freed(write, of, include_str!("sql/line_lapsed.sql"))?;
    // Only who finds something to free asks the guard: asking makes it notice a silence.
    if has_lapsed(write, of)? && may_reap(write)? {
        freed.extend(self::freed(write, of, include_str!("sql/permits_lapsed.sql"))?);
    }
    for (limit, key) in freed {
        advance(write, &limit, &key, None)?;
    }
    Ok(())
}

fn has_lapsed(write: &Write<'_>, of: Option<&str>) -> rusqlite::Result<bool> {
    write
        .connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM flexiq_permits WHERE until <= ?1 AND (?2 IS NULL OR name = ?2))",
        )?
        .query_row(params![write.now.as_millis(), of], |row| row.get(0))
}

/// Deletes what has lapsed; answers of which limits and keys.
fn freed(write: &Write<'_>, of: Option<&str>, sql: &str) -> rusqlite::Result<BTreeSet<(String, String)>> {
    write
        .connection
        .prepare_cached(sql)?
        .query_map(params![write.now.as_millis(), of, MOST_LOOKED_AT], read_key)?
        .collect()
}

fn read_key(row: &Row<'_>) -> rusqlite::Result<(String, String)> {
    Ok((row.get(0)?, row.get(1)?))
}
