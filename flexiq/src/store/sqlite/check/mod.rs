//! check: whether what is stored goes together.
//!
//! A look is one read of a file, on a connection of its own, so that nobody waits for it. Only where it finds something is
//! the writer asked to repair, which looks again in its transaction: what it counts is what it writes.

mod bodies;
mod counts;
mod jobs;
mod line;
mod partitions;

use std::path::Path;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use tokio::sync::oneshot;

use super::failure::{Tried, explain};
use super::guard::lease_ms;
use super::house::{all_moments, all_waiting};
use super::open::open_reader;
use super::write::Write;
use crate::clock::{Clock, Timestamp};
use crate::error::{Effect, Result};
use crate::store::finding::{Finding, FindingKind, MOST_FINDINGS, Repair};

/// Carries out a statement with as many of these parameters as it asks for.
fn execute<const N: usize>(connection: &Connection, sql: &str, given: [Value; N]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let asked = statement.parameter_count();
    statement.execute(params_from_iter(given.into_iter().take(asked))).map(drop)
}

/// One look at everything, with what it has found so far.
struct Round<'a> {
    connection: &'a Connection,
    now: Timestamp,
    /// How long a lease lasts that is given back.
    lease_ms: i64,
    repair: Repair,
    findings: Vec<Finding>,
}

/// Looks at a file, on a thread and a connection of its own, and changes nothing.
pub(super) async fn look_at_file(path: &Path, place: Arc<str>, clock: Clock) -> Result<Vec<Finding>> {
    let path = path.to_owned();
    let (found, answer) = oneshot::channel();
    let look = move || -> Result<Vec<Finding>> {
        let connection = open_reader(&path, &place)?;
        look_at_all(&connection, &clock).map_err(|error| explain(error, &place, Effect::None))
    };
    let thread = std::thread::Builder::new().name("flexiq-sqlite-check".into());
    thread.spawn(move || found.send(look())).map_err(|error| super::no_thread("this process", error))?;
    answer.await.unwrap_or_else(|_| unreachable!("the thread that looks always answers"))
}

fn look_at_all(connection: &Connection, clock: &Clock) -> rusqlite::Result<Vec<Finding>> {
    // One moment of the file from the first read on, whatever is written meanwhile; and no step that it shows came later.
    connection.execute_batch("BEGIN; SELECT 1 FROM flexiq_meta")?;
    let now = clock.now();
    let damages = damages(connection)?;
    // From pages that are damaged nothing can be learned.
    if !damages.is_empty() {
        return Ok(damages);
    }
    let mut round = Round::new(connection, now, Repair::Nothing)?;
    round.look()?;
    Ok(round.findings)
}

/// What SQLite itself finds wrong in the file.
fn damages(connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let mut statement = connection.prepare("PRAGMA quick_check(10)")?;
    let told: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let damages = told.into_iter().filter(|told| told != "ok");
    Ok(damages.map(|told| Finding::new(FindingKind::File, told, "its pages go together")).collect())
}

/// Looks in an open transaction, and repairs what it finds if that is wanted.
pub(super) fn check(write: &mut Write<'_>, repair: Repair) -> Tried<Vec<Finding>> {
    // Counters of this very transaction are not written yet.
    write.ledger.write(write.connection, write.lanes, write.now)?;
    let mut round = Round::new(write.connection, write.now, repair)?;
    round.look()?;
    let findings = round.findings;
    if findings.iter().any(|finding| finding.is_repaired) {
        // Rows of lanes may have gone.
        write.lanes.forget();
        write.news.is_room_anywhere = true;
        write.news.waiting.extend(all_waiting(write.connection)?);
        for (queue, moment) in all_moments(write.connection)? {
            write.news.put_in(&queue, moment);
        }
    }
    Ok(findings)
}

impl<'a> Round<'a> {
    fn new(connection: &'a Connection, now: Timestamp, repair: Repair) -> rusqlite::Result<Self> {
        Ok(Self { connection, now, lease_ms: lease_ms(connection)?, repair, findings: Vec::new() })
    }

    /// Jobs first, then what counts them, then what goes by the counts.
    fn look(&mut self) -> rusqlite::Result<()> {
        self.look_at_jobs()?;
        self.look_at_bodies()?;
        self.count_lanes()?;
        self.look_at_partitions()?;
        self.count_partitioned()?;
        self.count_queues()?;
        self.look_at_lines()
    }

    /// How many more may be found.
    fn room(&self) -> usize {
        MOST_FINDINGS.saturating_sub(self.findings.len())
    }

    /// Says what was found, and carries out what repairs it if that is wanted.
    fn found(
        &mut self,
        finding: Finding,
        repair: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let is_repaired = self.repair.is_wanted();
        if is_repaired {
            repair(self.connection)?;
        }
        self.findings.push(finding.repaired(is_repaired));
        Ok(())
    }
}
