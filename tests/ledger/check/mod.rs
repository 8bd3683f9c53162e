//! What must be true of a ledger. Each rule is pure, answers a figure worth printing, and is itself tried on ledgers that
//! break it.

mod calls;
mod cap;
mod ends;
mod gates;
#[cfg(test)]
mod gates_broken;
mod rate;
mod runs;
mod scene;
mod starts;

pub use calls::calls;
pub use cap::{Span, cap};
pub use ends::{End, finished_once, nothing_lost};
pub use gates::{Judged, gates};
pub use rate::rate;
pub use runs::{Lease, restarts, runs_grow};

use flexiq::JobId;

/// What a ledger shows that must never be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Jobs that were stored have not ended.
    #[error("{} of {stored} stored jobs have not ended, {} among them", jobs.len(), jobs[0])]
    Lost {
        /// The jobs.
        jobs: Vec<JobId>,
        /// All that were stored.
        stored: usize,
    },
    /// A job has ended more than once.
    #[error("job {job} has ended {times} times")]
    EndedTwice {
        /// The job.
        job: JobId,
        /// How often.
        times: usize,
    },
    /// A run was started after its job had ended.
    #[error("run {run} of job {job} was leased after the job had ended with run {ended}")]
    RunAfterEnd {
        /// The job.
        job: JobId,
        /// The run.
        run: u32,
        /// The run that had ended it.
        ended: u32,
    },
    /// More ran at once than a cap allows.
    #[error("{what}: {found} at once at {at}, and the cap is {cap}")]
    OverCap {
        /// What is capped.
        what: String,
        /// The cap.
        cap: usize,
        /// How many ran.
        found: usize,
        /// When.
        at: i64,
    },
    /// More started in a window than a rate allows.
    #[error("{what}: {found} starts in {period_ms} ms from {from}, and the rate is {most}")]
    OverRate {
        /// What is rated.
        what: String,
        /// Starts that are allowed in the period.
        most: usize,
        /// The period.
        period_ms: i64,
        /// Starts that were found.
        found: usize,
        /// Where the window begins.
        from: i64,
    },
    /// A job started that a gate kept waiting.
    #[error("job {job} started at {at}: {gate}")]
    StartedShut {
        /// The job.
        job: JobId,
        /// The gate.
        gate: String,
        /// When.
        at: i64,
    },
    /// A claim took more than it had room for.
    #[error("job {job} was claimed at {at}, and there was no room for it")]
    OverRoom {
        /// The job.
        job: JobId,
        /// When.
        at: i64,
    },
    /// A job started before one that goes first.
    #[error("job {job} started at {at} before job {before}")]
    OutOfOrder {
        /// The job.
        job: JobId,
        /// The one that goes first.
        before: JobId,
        /// When.
        at: i64,
    },
    /// A claim with room left a job behind that every gate admits.
    #[error("job {job} was left behind at {at}, and could have started")]
    LeftIdle {
        /// The job.
        job: JobId,
        /// When.
        at: i64,
    },
    /// A run's number is not above that of the run before.
    #[error("job {job}: run {run} followed run {before}")]
    RunNotGrown {
        /// The job.
        job: JobId,
        /// Its number.
        run: u32,
        /// The number before.
        before: u32,
    },
    /// A killed run's job was not given back.
    #[error("job {job}: run {run} was killed at {at}, and its lease never ended")]
    NeverRestarted {
        /// The job.
        job: JobId,
        /// The run.
        run: u32,
        /// When it was killed.
        at: i64,
    },
    /// A killed run's job was given back too late.
    #[error("job {job}: run {run} was killed, and its lease ended {after_ms} ms later")]
    RestartedLate {
        /// The job.
        job: JobId,
        /// The run.
        run: u32,
        /// How long after the kill.
        after_ms: i64,
    },
    /// A job is not there as often as its producer was told.
    #[error("job {job} is stored {times} times, and its producer was told {told}")]
    Misstored {
        /// The job.
        job: JobId,
        /// How often it is there.
        times: usize,
        /// What its producer was told.
        told: &'static str,
    },
    /// A part of a batch is there.
    #[error("{there} of the {jobs} jobs of one batch are stored")]
    BatchTorn {
        /// Jobs that are there.
        there: usize,
        /// Jobs of the batch.
        jobs: usize,
    },
}
