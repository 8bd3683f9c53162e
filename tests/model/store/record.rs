//! One stored job, and its moves from state to state.

use std::cmp::Reverse;
use std::time::Duration;

use flexiq::internals::{Lapse, LeaseId, Name, Outset, Payload, Timestamp, Unique, Value, WorkerId};
use flexiq::{DeadReason, JobId, State};

use super::story::Chronicle;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Everything that is stored of a job.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) id: JobId,
    pub(super) queue: Name,
    pub(super) task: Name,
    pub(super) partition: String,
    pub(super) payload: Payload,
    pub(super) priority: i8,
    pub(super) outset: Outset,
    pub(super) unique: Option<Unique>,
    pub(super) state: State,
    pub(super) runs: u32,
    pub(super) failures: u32,
    pub(super) deferrals: u32,
    pub(super) losses: u32,
    pub(super) last_error: Option<String>,
    pub(super) cancel: Cancel,
    pub(super) enqueued_at: Timestamp,
    pub(super) due_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    /// While it runs.
    pub(super) lease: Option<Lease>,
    /// Once it has ended: how long it is kept.
    pub(super) kept_until: Option<Timestamp>,
    /// Once it has succeeded.
    pub(super) value: Option<Value>,
    pub(super) chronicle: Chronicle,
}

/// Whether its worker shall stop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancel {
    No,
    Asked,
    /// The worker knows.
    Told,
}

/// Who runs a job, and until when.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) worker: WorkerId,
    pub(super) until: Timestamp,
    pub(super) max_losses: u32,
    pub(super) lapse: Lapse,
}

impl Record {
    /// Its place among all that may start: the least is the best.
    pub(super) fn place(&self) -> (Reverse<i8>, Timestamp, JobId) {
        (Reverse(self.priority), self.due_at, self.id)
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// Whether this is the newest run, and this worker's.
    pub(super) fn is_held(&self, worker: WorkerId, run: u32) -> bool {
        self.runs == run && self.lease.as_ref().is_some_and(|lease| lease.worker == worker)
    }

    /// The lease of its newest run.
    pub(super) fn lease_id(&self) -> LeaseId {
        LeaseId { job: self.id, run: self.runs }
    }

    /// Begins the next run.
    pub(super) fn start(&mut self, now: Timestamp, lease: Lease) {
        self.state = State::Running;
        self.runs += 1;
        self.started_at = Some(now);
        self.cancel = Cancel::No;
        self.lease = Some(lease);
    }

    /// Lets it wait: for its due time, or for a worker. What is due is as old as now.
    pub(super) fn wait_until(&mut self, due: Timestamp, now: Timestamp, scheduled: State) {
        self.lease = None;
        self.due_at = due.max(now);
        self.state = if due <= now { State::Ready } else { scheduled };
    }

    /// Makes it ready at its old place.
    pub(super) fn release(&mut self) {
        self.lease = None;
        self.state = State::Ready;
    }

    pub(super) fn succeed(&mut self, now: Timestamp, value: Value, keep: Duration) {
        self.end(State::Succeeded, now, keep);
        self.value = Some(value);
    }

    pub(super) fn die(&mut self, now: Timestamp, reason: DeadReason) {
        self.end(State::Dead(reason), now, 90 * DAY);
    }

    pub(super) fn cancel(&mut self, now: Timestamp) {
        self.end(State::Cancelled, now, DAY);
    }

    pub(super) fn expire(&mut self, now: Timestamp) {
        self.end(State::Expired, now, DAY);
    }

    fn end(&mut self, state: State, now: Timestamp, keep: Duration) {
        self.lease = None;
        self.state = state;
        self.ended_at = Some(now);
        self.kept_until = Some(now + keep);
    }
}
