//! Triggers that the test puts into the file write down every move of every job, in the transaction that makes it.

use std::path::Path;

use flexiq::JobId;
use rusqlite::Connection;

use super::{Move, Told};

/// The log of one file.
pub(crate) struct Log {
    connection: Connection,
}

impl Log {
    /// Begins the log of a store that has been opened once.
    pub(super) fn keep(file: &Path) -> Self {
        let connection = Connection::open(file).expect("the store's file is there");
        connection.busy_timeout(std::time::Duration::from_secs(10)).expect("it can wait");
        connection
            .execute_batch(
                "
                CREATE TABLE told (
                    seq    INTEGER PRIMARY KEY,
                    job    BLOB    NOT NULL,
                    lane   INTEGER NOT NULL,
                    run    INTEGER NOT NULL,
                    before INTEGER,
                    after  INTEGER NOT NULL,
                    at     INTEGER NOT NULL
                );
                CREATE TRIGGER told_stored AFTER INSERT ON flexiq_jobs BEGIN
                    INSERT INTO told (job, lane, run, before, after, at)
                    VALUES (new.id, new.lane, new.runs, NULL, new.state, new.enqueued_at);
                END;
                CREATE TRIGGER told_moved AFTER UPDATE OF state ON flexiq_jobs WHEN old.state <> new.state BEGIN
                    INSERT INTO told (job, lane, run, before, after, at)
                    VALUES (
                        new.id, new.lane, new.runs, old.state, new.state,
                        CASE new.state WHEN 2 THEN new.started_at ELSE CAST(unixepoch('subsec') * 1000 AS INTEGER) END
                    );
                END;
                ",
            )
            .expect("the log can be kept");
        Self { connection }
    }

    /// Reads the log.
    pub(super) fn read(&self) -> Told {
        let mut told = Told::default();
        let mut statement = self
            .connection
            .prepare(
                "SELECT seq, job, flexiq_lanes.task, run, before, after, at
                 FROM told JOIN flexiq_lanes USING (lane)
                 ORDER BY seq",
            )
            .expect("the log is there");
        let mut rows = statement.query([]).expect("the log can be read");
        while let Some(row) = rows.next().expect("the log can be read") {
            told.take(&Move::read(row).expect("the log is ours"));
        }
        told
    }
}

impl Move {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            job: JobId::from_bytes(row.get(1)?),
            task: row.get(2)?,
            run: row.get(3)?,
            before: row.get(4)?,
            after: row.get(5)?,
            at: row.get(6)?,
        })
    }
}
