//! The log of a gate's starts: what its rates are decided by.
//!
//! One row for all that started together. Its moments never go back, also when the clock is stepped: a rate is exact in
//! the time of its log.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::codes::write_rate;
use super::enqueue::millis;
use super::gates::{is_of_partition, rates_of_partition};
use super::lanes::QueueId;
use crate::clock::Timestamp;
use crate::policy::{Log, Pace, Rate, longest};

/// An addition adds one row and prunes at most this many that no rate counts any more, so that pruning keeps up.
const MOST_PRUNED: i64 = 2;

/// Stands for the longest period that a gate was ever asked with, in milliseconds, among its paces.
const LONGEST: &str = "longest";

/// The starts of named limits lie in no queue.
pub(super) const NO_QUEUE: QueueId = 0;

/// The log of one gate, as it stood when it was opened.
pub(super) struct Starts<'a> {
    connection: &'a Connection,
    queue: QueueId,
    /// The gate: empty for the whole queue.
    gate: &'a str,
    newest: Option<Newest>,
}

/// The newest row.
struct Newest {
    number: i64,
    starts: i64,
    at: Timestamp,
    until: Option<i64>,
}

impl<'a> Starts<'a> {
    pub(super) fn open(connection: &'a Connection, queue: QueueId, gate: &'a str) -> rusqlite::Result<Self> {
        let newest = connection
            .prepare_cached(include_str!("sql/starts_newest.sql"))?
            .query_row(params![queue, gate], |row| {
                let at = Timestamp::from_millis(row.get(2)?);
                Ok(Newest { number: row.get(0)?, starts: row.get(1)?, at, until: row.get(3)? })
            })
            .optional()?;
        Ok(Self { connection, queue, gate, newest })
    }

    /// An empty log, for a gate without rates, which does not ask.
    pub(super) fn unasked(connection: &'a Connection) -> Self {
        Self { connection, queue: 0, gate: "", newest: None }
    }

    /// Logs starts, and forgets what has left every window.
    pub(super) fn add(mut self, starts: u32, now: Timestamp, rates: &[Rate]) -> rusqlite::Result<()> {
        let at = self.moment(now);
        for rate in rates.iter().filter(|rate| rate.spread) {
            let pace = rate.after(starts, at, self.pace(rate)?);
            self.keep(&write_rate(rate), pace.0)?;
        }
        let next = self.newest.as_ref().map_or(1, |newest| newest.number + newest.starts);
        // None goes before an older one.
        let until = self.newest.as_ref().and_then(|newest| newest.until).unwrap_or(i64::MIN);
        self.connection.prepare_cached(include_str!("sql/starts_add.sql"))?.execute(params![
            self.queue,
            self.gate,
            next,
            starts,
            at.as_millis(),
            is_of_partition(self.gate).then(|| until.max((at + longest(rates)).as_millis())),
        ])?;
        self.connection.prepare_cached(include_str!("sql/starts_prune.sql"))?.execute(params![
            self.queue,
            self.gate,
            (at - longest(rates)).as_millis(),
            MOST_PRUNED,
        ])?;
        Ok(())
    }

    /// Logs starts of a gate that is asked with whatever rates its callers name: what others may still count with a longer
    /// period is kept.
    pub(super) fn add_for_any(self, starts: u32, now: Timestamp, rates: &[Rate]) -> rusqlite::Result<()> {
        let before = Duration::from_millis(self.kept(LONGEST)?.unwrap_or(0).unsigned_abs());
        let period = longest(rates).max(before);
        self.keep(LONGEST, millis(period))?;
        let longest = Rate { starts: u32::MAX, period, spread: false };
        let rates: Vec<Rate> = rates.iter().cloned().chain([longest]).collect();
        self.add(starts, now, &rates)
    }

    /// Where the pace of a rate stands, as it is written.
    fn kept(&self, rate: &str) -> rusqlite::Result<Option<i64>> {
        self.connection
            .prepare_cached("SELECT pace FROM flexiq_paces WHERE queue = ?1 AND gate = ?2 AND rate = ?3")?
            .query_row(params![self.queue, self.gate, rate], |row| row.get(0))
            .optional()
    }

    fn keep(&self, rate: &str, pace: i64) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO flexiq_paces (queue, gate, rate, pace) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![self.queue, self.gate, rate, pace])
            .map(drop)
    }
}

/// Forgets starts of partitions and named limits, which may be gone: those that have left every window, at their time and
/// now.
pub(super) fn forget_over(connection: &Connection, now: Timestamp, most: usize) -> rusqlite::Result<()> {
    let over: Vec<(QueueId, String)> = connection
        .prepare_cached(include_str!("sql/starts_over.sql"))?
        .query_map(params![now.as_millis(), most as i64], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (queue, gate) in over {
        let longest = match queue {
            NO_QUEUE => Duration::ZERO,
            _ => longest(&rates_of_partition(connection, &gate)?),
        };
        connection
            .prepare_cached(
                "DELETE FROM flexiq_starts WHERE queue = ?1 AND gate = ?2 AND until <= ?3 AND at <= ?4",
            )?
            .execute(params![queue, gate, now.as_millis(), (now - longest).as_millis()])?;
        // A longer rate holds now: the rest is looked at when it has left that.
        connection
            .prepare_cached(
                "UPDATE flexiq_starts SET until = at + ?4 WHERE queue = ?1 AND gate = ?2 AND until <= ?3",
            )?
            .execute(params![queue, gate, now.as_millis(), millis(longest)])?;
        connection.prepare_cached(include_str!("sql/paces_over.sql"))?.execute(params![queue, gate])?;
    }
    Ok(())
}

impl Log for Starts<'_> {
    type Error = rusqlite::Error;

    fn moment(&self, now: Timestamp) -> Timestamp {
        self.newest.as_ref().map_or(now, |newest| now.max(newest.at))
    }

    fn nth_newest(&mut self, n: u32) -> rusqlite::Result<Option<Timestamp>> {
        let Some(newest) = &self.newest else { return Ok(None) };
        let number = newest.number + newest.starts - i64::from(n);
        if number >= newest.number {
            return Ok(Some(newest.at));
        }
        self.connection
            .prepare_cached(include_str!("sql/starts_nth.sql"))?
            .query_row(params![self.queue, self.gate, number], |row| row.get(0))
            .optional()
            .map(|at| at.map(Timestamp::from_millis))
    }

    fn pace(&mut self, rate: &Rate) -> rusqlite::Result<Pace> {
        let kept = self.kept(&write_rate(rate))?;
        // A rate that was not in force at the last start is spaced from it all the same.
        let since_last = self.newest.as_ref().map(|newest| rate.after(1, newest.at, Pace::default()).0);
        Ok(Pace(kept.max(since_last).unwrap_or_default()))
    }
}
