//! One key of a named limit, as its tables show it: who holds a permit, who stands in line, and who was called.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::codes::{read_id, read_rates, write_rates};
use super::gates::gate_name;
use super::starts::{NO_QUEUE, Starts};
use crate::clock::Timestamp;
use crate::policy::{Gate, Rate, Verdict};
use crate::store::permits::{Ask, PermitId};

/// One key of a named limit.
pub(super) struct Line<'a> {
    connection: &'a Connection,
    now: Timestamp,
    name: &'a str,
    key: &'a str,
}

/// One who stands in line, or was called out of it.
pub(super) struct Place {
    pub(super) job: [u8; 16],
    pub(super) place: i64,
    pub(super) is_called: bool,
    /// What it asks with,
    max_concurrent: Option<u32>,
    rates: Vec<Rate>,
    /// and until when the limit is held.
    held_until: Option<Timestamp>,
    /// When it comes by itself, as it was told last.
    pub(super) due: Timestamp,
    /// The place in its queue to which it goes back when it is called.
    pub(super) ready_at: Timestamp,
}

/// When one more permit may be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Now,
    /// Time opens it: rates and holds are over then, if nobody else is granted one.
    At(Timestamp),
    /// Not before a permit is given back, or one that is reserved is taken or lapses.
    ByCall,
}

impl Opening {
    /// When time opens it, if time alone does.
    pub(super) fn by_time(self) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(at),
            Self::Now | Self::ByCall => None,
        }
    }
}

impl<'a> Line<'a> {
    pub(super) fn new(connection: &'a Connection, now: Timestamp, name: &'a str, key: &'a str) -> Self {
        Self { connection, now, name, key }
    }

    /// When one more permit may be granted to who asks so, beside those that are reserved.
    pub(super) fn opening(&self, place: &Place) -> rusqlite::Result<Opening> {
        let (reserved, counted) = self
            .connection
            .prepare_cached(include_str!("sql/line_reserved.sql"))?
            .query_row(params![self.name, self.key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.opening_beside(place, reserved, counted)
    }

    /// When the permit that is reserved for one who was called may be granted: at once, unless the limit is held since, or
    /// it asks otherwise than it did.
    pub(super) fn opening_for_called(&self, place: &Place) -> rusqlite::Result<Opening> {
        self.opening_beside(place, 0, 0)
    }

    /// When one more permit may be granted beside so many that are reserved, some of which rates count.
    fn opening_beside(&self, place: &Place, reserved: u32, counted: u32) -> rusqlite::Result<Opening> {
        if let Some(most) = place.max_concurrent
            && self.held()? + reserved >= most
        {
            return Ok(Opening::ByCall);
        }
        let opens_at = match self.ask_rates(&place.rates, counted + 1)? {
            Verdict::Open(starts) if starts <= counted => return Ok(Opening::ByCall),
            verdict => verdict.opens_at(),
        };
        let held_until = place.held_until.filter(|&until| until > self.now);
        Ok(opens_at.max(held_until).map_or(Opening::Now, Opening::At))
    }

    /// Permits that are held.
    fn held(&self) -> rusqlite::Result<u32> {
        self.connection
            .prepare_cached("SELECT count(*) FROM flexiq_permits WHERE name = ?1 AND key = ?2")?
            .query_row(params![self.name, self.key], |row| row.get(0))
    }

    fn ask_rates(&self, rates: &[Rate], wanted: u32) -> rusqlite::Result<Verdict> {
        if rates.is_empty() {
            return Ok(Verdict::Open(u32::MAX));
        }
        let name = gate_name(self.name, self.key);
        let mut starts = Starts::open(self.connection, NO_QUEUE, &name)?;
        let gate = Gate { rates: rates.to_vec(), ..Gate::default() };
        gate.admit(wanted, 0, self.now, &mut starts)
    }

    /// Logs the start of a permit that is granted.
    pub(super) fn log(&self, rates: &[Rate]) -> rusqlite::Result<()> {
        if rates.is_empty() {
            return Ok(());
        }
        let gate = gate_name(self.name, self.key);
        Starts::open(self.connection, NO_QUEUE, &gate)?.add_for_any(1, self.now, rates)
    }

    /// The first who stands in line and was not called.
    pub(super) fn first(&self) -> rusqlite::Result<Option<Place>> {
        self.find(include_str!("sql/line_first.sql"), params![self.name, self.key])
    }

    /// The place of a job.
    pub(super) fn place_of(&self, job: &[u8; 16]) -> rusqlite::Result<Option<Place>> {
        self.find(include_str!("sql/line_of_job.sql"), params![self.name, self.key, job])
    }

    fn find(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<Option<Place>> {
        self.connection.prepare_cached(sql)?.query_row(params, read_place).optional()
    }

    /// Puts the job of a permit at a place, or leaves it at its own; what it asks with is kept anew.
    pub(super) fn enter(&self, ask: &Ask, place: i64) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO flexiq_line (name, key, job, place, max_concurrent, rates, ready_at, due)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)
                 ON CONFLICT (name, key, job) DO UPDATE SET
                     max_concurrent = excluded.max_concurrent,
                     rates = excluded.rates,
                     ready_at = excluded.ready_at",
            )?
            .execute(params![
                self.name,
                self.key,
                ask.permit.lease.job.as_bytes(),
                place,
                ask.max_concurrent,
                write_rates(&ask.rates),
                ask.ready_at.as_millis(),
            ])
            .map(drop)
    }

    /// The place behind all, and those who were called count: they may be put back.
    pub(super) fn end(&self) -> rusqlite::Result<i64> {
        Ok(self.outermost(include_str!("sql/line_last.sql"))?.map_or(1, |last| last + 1))
    }

    /// The place before all.
    pub(super) fn start(&self) -> rusqlite::Result<i64> {
        Ok(self.outermost(include_str!("sql/line_least.sql"))?.map_or(1, |least| least - 1))
    }

    fn outermost(&self, sql: &str) -> rusqlite::Result<Option<i64>> {
        self.connection.prepare_cached(sql)?.query_row(params![self.name, self.key], |row| row.get(0))
    }

    pub(super) fn leave(&self, job: &[u8; 16]) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("DELETE FROM flexiq_line WHERE name = ?1 AND key = ?2 AND job = ?3")?
            .execute(params![self.name, self.key, job])
            .map(drop)
    }

    /// Reserves a permit for one who was called; `None` puts it back into the line.
    pub(super) fn reserve(&self, job: &[u8; 16], until: Option<Timestamp>) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE flexiq_line SET called_until = ?4 WHERE name = ?1 AND key = ?2 AND job = ?3",
            )?
            .execute(params![self.name, self.key, job, until.map(Timestamp::as_millis)])
            .map(drop)
    }

    /// Keeps what a job was told.
    pub(super) fn told(&self, job: &[u8; 16], due: Timestamp) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("UPDATE flexiq_line SET due = ?4 WHERE name = ?1 AND key = ?2 AND job = ?3")?
            .execute(params![self.name, self.key, job, due.as_millis()])
            .map(drop)
    }

    /// Lets nobody have a permit until then. A hold never ends an earlier one sooner.
    pub(super) fn hold(&self, until: Timestamp) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO flexiq_named (name, key, held_until) VALUES (?1, ?2, ?3)
                 ON CONFLICT (name, key) DO UPDATE SET held_until = max(coalesce(held_until, 0), excluded.held_until)",
            )?
            .execute(params![self.name, self.key, until.as_millis()])
            .map(drop)
    }

    /// Keeps when time lets the first in line have a permit.
    pub(super) fn opens(&self, at: Option<Timestamp>) -> rusqlite::Result<()> {
        let sql = match at {
            Some(_) => {
                "INSERT INTO flexiq_named (name, key, opens_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT (name, key) DO UPDATE SET opens_at = excluded.opens_at"
            }
            None => {
                "UPDATE flexiq_named SET opens_at = ?3 WHERE name = ?1 AND key = ?2 AND opens_at IS NOT NULL"
            }
        };
        self.connection
            .prepare_cached(sql)?
            .execute(params![self.name, self.key, at.map(Timestamp::as_millis)])
            .map(drop)
    }
}

fn read_place(row: &Row<'_>) -> rusqlite::Result<Place> {
    Ok(Place {
        job: read_id(row, 0)?,
        place: row.get(1)?,
        is_called: row.get(2)?,
        held_until: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
        max_concurrent: row.get(4)?,
        rates: read_rates(row.get_ref(5)?.as_str()?)?,
        due: Timestamp::from_millis(row.get(6)?),
        ready_at: Timestamp::from_millis(row.get(7)?),
    })
}

/// The columns of a permit's row, in their order.
type OfPermit<'a> = (&'a str, &'a str, &'a [u8; 16], u32);

pub(super) fn of_permit(permit: &PermitId) -> OfPermit<'_> {
    (&permit.limit, &permit.key, permit.lease.job.as_bytes(), permit.lease.run)
}
