//! The store's own log of what it did: every move of every job, with the step that makes it. So it has an exact order,
//! across processes, and knows of leases whose body never began.

#[cfg(feature = "redis")]
mod redis;
mod sqlite;

use std::collections::HashMap;
use std::path::Path;

use flexiq::JobId;
use flexiq_tests::ledger::check::{End, Lease, Span};

/// A job whose state has a lower code is pending; one of a higher code has ended.
const RUNNING: i64 = 2;

/// Keeps the log of one store.
pub(crate) enum StoreLog {
    Sqlite(sqlite::Log),
    #[cfg(feature = "redis")]
    Redis(redis::Log),
}

impl StoreLog {
    /// Begins the log of a store that has been opened once.
    pub(crate) fn keep(url: &str) -> Self {
        match url.strip_prefix("sqlite://") {
            Some(file) => Self::Sqlite(sqlite::Log::keep(Path::new(file))),
            #[cfg(feature = "redis")]
            None => Self::Redis(redis::Log::keep(url)),
            #[cfg(not(feature = "redis"))]
            None => panic!("a store without its feature: {url}"),
        }
    }

    /// Reads the log.
    pub(crate) fn read(&self) -> Told {
        let mut told = match self {
            Self::Sqlite(log) => log.read(),
            #[cfg(feature = "redis")]
            Self::Redis(log) => log.read(),
        };
        let still = std::mem::take(&mut told.pending_since).into_values();
        told.pending.extend(still.map(|from| Span { from, to: i64::MAX }));
        told
    }
}

/// All that a store did.
#[derive(Clone, Default)]
pub(crate) struct Told {
    /// The jobs it took in, and their tasks.
    pub(crate) stored: Vec<(JobId, String)>,
    /// The leases it gave.
    pub(crate) leases: Vec<Lease>,
    /// The jobs that ended.
    pub(crate) ends: Vec<End>,
    /// From when until when each job was pending, in the order of all moves.
    pub(crate) pending: Vec<Span>,
    /// The lease of each job that runs, and since when each job is pending.
    leased: HashMap<JobId, usize>,
    pending_since: HashMap<JobId, i64>,
}

/// One move of one job.
struct Move {
    /// Its place in the order of all moves.
    seq: i64,
    job: JobId,
    task: String,
    run: u32,
    /// The codes of the states. A job that was stored had none before.
    before: Option<i64>,
    after: i64,
    /// The store's moment.
    at: i64,
}

impl Told {
    fn take(&mut self, step: &Move) {
        let job = step.job;
        if step.before.is_none() {
            self.stored.push((job, step.task.clone()));
        }
        let is_pending = step.after < RUNNING;
        match self.pending_since.remove(&job).or(is_pending.then_some(step.seq)) {
            Some(since) if is_pending => drop(self.pending_since.insert(job, since)),
            Some(from) => self.pending.push(Span { from, to: step.seq }),
            None => {}
        }
        if step.before == Some(RUNNING)
            && let Some(lease) = self.leased.remove(&job)
        {
            self.leases[lease].freed_ms = Some(step.at);
            self.leases[lease].held.to = step.seq;
        }
        if step.after == RUNNING {
            self.leased.insert(job, self.leases.len());
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
