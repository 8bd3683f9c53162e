//! The guard of the reaper: after an outage, or a jump of the clock, the living renew first.
//!
//! If the last beat of anyone is older than a lease less two beats, or lies in the future, then nobody could renew,
//! and a lease that has run out says nothing about its worker. Then nothing is reaped for one lease.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::enqueue::millis;
use super::write::Write;

/// For a store in which nobody has beaten yet.
const LEASE_MS: i64 = 10_000;

/// Says that a worker lives, after looking whether that is news.
pub(super) fn beat(write: &Write<'_>, lease: Duration, every: Duration) -> rusqlite::Result<()> {
    may_reap(write)?;
    // A silence that the beats themselves make is none: not below one beat and a quarter.
    let quiet = lease.saturating_sub(every * 2).max(every + every / 4);
    set(write.connection, "beat_at", write.now.as_millis())?;
    set(write.connection, "quiet_ms", millis(quiet))?;
    set(write.connection, "lease_ms", millis(lease))
}

/// Whether leases that have run out may be taken back now.
pub(super) fn may_reap(write: &Write<'_>) -> rusqlite::Result<bool> {
    let connection = write.connection;
    let now = write.now.as_millis();
    let lease = lease_ms(connection)?;
    let quiet = get(connection, "quiet_ms")?.unwrap_or(lease * 2 / 5);
    // Where nobody has ever beaten, nobody holds a lease.
    let Some(beat_at) = get(connection, "beat_at")? else { return Ok(true) };
    if beat_at > now || now - beat_at > quiet {
        // From here on it is known that somebody looks: what follows is no silence.
        set(connection, "beat_at", now)?;
        set(connection, "reap_after", now + lease)?;
        return Ok(false);
    }
    Ok(now >= reap_after(connection)?)
}

/// Nothing is reaped before this moment.
pub(super) fn reap_after(connection: &Connection) -> rusqlite::Result<i64> {
    Ok(get(connection, "reap_after")?.unwrap_or(i64::MIN))
}

/// How long a lease lasts, as the last beat said.
pub(super) fn lease_ms(connection: &Connection) -> rusqlite::Result<i64> {
    Ok(get(connection, "lease_ms")?.unwrap_or(LEASE_MS))
}

fn get(connection: &Connection, key: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT value FROM flexiq_meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
}

fn set(connection: &Connection, key: &str, value: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO flexiq_meta (key, value) VALUES (?1, ?2)")?
        .execute(params![key, value])
        .map(drop)
}
