//! The store's own log of what it did: triggers that the test puts into the file write down every move of every job, in
//! the transaction that makes it. So it has an exact order, across processes, and knows of leases whose body never began.

use std::collections::HashMap;
use std::path::Path;

use flexiq::JobId;
use flexiq_tests::ledger::check::{End, Lease, Span};
use rusqlite::Connection;

const RUNNING: i64 = 2;

/// Keeps the log of one file.
pub(crate) struct StoreLog {
    connection: Connection,
}

/// All that a store did.
#[derive(Default)]
pub(crate) struct Told {
    /// The jobs it took in, and their tasks.
    pub(crate) stored: Vec<(JobId, String)>,
    /// The leases it gave.
    pub(crate) leases: Vec<Lease>,
    /// The jobs that ended.
    pub(crate) ends: Vec<End>,
    /// From when until when each job was pending, in the order of all moves.
    pub(crate) pending: Vec<Span>,
}

impl StoreLog {
    /// Begins the log of a store that has been opened once.
    pub(crate) fn keep(file: &Path) -> Self {
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
    pub(crate) fn read(&self) -> Told {
        let mut told = Told::default();
        let (mut leased, mut pending) = (HashMap::new(), HashMap::new());
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
            told.take(&Move::read(row).expect("the log is ours"), &mut leased, &mut pending);
        }
        let still = pending.into_values().map(|from| Span { from, to: i64::MAX });
        told.pending.extend(still);
        told
    }
}

/// One move of one job.
struct Move {
    seq: i64,
    job: JobId,
    task: String,
    run: u32,
    before: Option<i64>,
    after: i64,
    at: i64,
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

impl Told {
    fn take(&mut self, step: &Move, leased: &mut HashMap<JobId, usize>, pending: &mut HashMap<JobId, i64>) {
        let job = step.job;
        if step.before.is_none() {
            self.stored.push((job, step.task.clone()));
        }
        let is_pending = step.after < RUNNING;
        match pending.remove(&job).or(is_pending.then_some(step.seq)) {
            Some(since) if is_pending => drop(pending.insert(job, since)),
            Some(from) => self.pending.push(Span { from, to: step.seq }),
            None => {}
        }
        if step.before == Some(RUNNING)
            && let Some(lease) = leased.remove(&job)
        {
            self.leases[lease].freed_ms = Some(step.at);
            self.leases[lease].held.to = step.seq;
        }
        if step.after == RUNNING {
            leased.insert(job, self.leases.len());
            self.leases.push(Lease {
                job,
                task: step.task.clone(),
                run: step.run,
                claimed_ms: step.at,
                freed_ms: None,
                held: Span { from: step.seq, to: i64::MAX },
            });
        }
        if step.after > RUNNING {
            self.ends.push(End { job, run: step.run, at: step.seq });
        }
    }
}
