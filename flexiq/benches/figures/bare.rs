//! Yardsticks: the same moves of data by bare `rusqlite`, without anything that a job system adds.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

/// How many jobs are moved in one transaction.
const BATCH: u32 = 100;

/// Jobs in one bare table.
pub(crate) struct Bare {
    connection: Connection,
}

impl Bare {
    /// Opens a new file at this level of `synchronous`, set up as flexiq sets up its own.
    pub(crate) fn open(file: &Path, synchronous: &str) -> rusqlite::Result<Self> {
        let connection = Connection::open(file)?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "cache_size", -64 * 1024)?;
        connection.execute_batch(
            "
            CREATE TABLE jobs (id BLOB PRIMARY KEY, state INTEGER NOT NULL, payload BLOB NOT NULL) WITHOUT ROWID;
            CREATE INDEX jobs_ready ON jobs (id) WHERE state = 0;
            ",
        )?;
        Ok(Self { connection })
    }

    /// Stores jobs in one transaction.
    pub(crate) fn store(&mut self, from: usize, jobs: usize, payload: &[u8]) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO jobs VALUES (?1, 0, ?2)")?;
            for number in from..from + jobs {
                insert.execute(params![(number as u128).to_be_bytes(), payload])?;
            }
        }
        transaction.commit()
    }

    /// Claims and deletes all: each transaction deletes what the one before has claimed.
    pub(crate) fn drain(&mut self) -> rusqlite::Result<Duration> {
        let begun = Instant::now();
        let mut claimed = Vec::new();
        loop {
            claimed = self.turn(&claimed)?;
            if claimed.is_empty() {
                return Ok(begun.elapsed());
            }
        }
    }

    fn turn(&mut self, claimed: &[(Vec<u8>, Vec<u8>)]) -> rusqlite::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let transaction = self.connection.transaction()?;
        let next = {
            let mut delete = transaction.prepare_cached("DELETE FROM jobs WHERE id = ?1")?;
            for (id, _) in claimed {
                delete.execute([id])?;
            }
            transaction
                .prepare_cached(
                    "UPDATE jobs SET state = 1
                     WHERE id IN (SELECT id FROM jobs WHERE state = 0 ORDER BY id LIMIT ?1)
                     RETURNING id, payload",
                )?
                .query_map([BATCH], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?
        };
        transaction.commit()?;
        Ok(next)
    }

    /// Stores one job, and claims it: two transactions.
    pub(crate) fn pass_one(&mut self, number: usize, payload: &[u8]) -> rusqlite::Result<Duration> {
        let begun = Instant::now();
        self.store(number, 1, payload)?;
        let claimed = self.turn(&[])?;
        let took = begun.elapsed();
        self.turn(&claimed)?;
        Ok(took)
    }
}
