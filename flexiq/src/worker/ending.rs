//! From the outcome of a run to what the store shall do with its job: the one place where worker and policy meet.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::job::{DeadReason, Outcome, ScheduledReason, SetbackKind, Transition, Value};
use crate::policy::{Budgets, Counters, after_run, hold_of};
use crate::store::{Claimed, Finish, LeaseId, Outset};
use crate::task::TaskDefinition;

/// What the end of a run is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    definition: &'static TaskDefinition,
    counters: Counters,
    outset: Outset,
}

impl Ending {
    pub(super) fn new(definition: &'static TaskDefinition, claimed: &Claimed) -> Self {
        let counters = Counters { failures: claimed.failures, deferrals: claimed.deferrals };
        Self { definition, counters, outset: claimed.outset }
    }

    /// Failures forgiven: the call's own number, or else the task's.
    pub(super) fn max_retries(&self) -> u32 {
        self.outset.max_retries.unwrap_or(self.definition.budgets.max_retries)
    }

    /// A run longer than this is a failure: the call's own time, or else the task's.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.outset.timeout.or(self.definition.timeout)
    }

    /// What becomes of the job, and what is held from now on.
    pub(super) fn judge(&self, lease: LeaseId, outcome: Outcome, now: Timestamp) -> Finish {
        let budgets = Budgets { max_retries: self.max_retries(), ..self.definition.budgets };
        let keep = match &outcome {
            Outcome::Succeeded(value) => self.keep(value),
            _ => Duration::ZERO,
        };
        let (hold, setback) = (hold_of(&outcome), SetbackKind::of_outcome(&outcome));
        let transition = after_run(outcome, self.counters, &budgets, keep, now, fastrand::f64());
        Finish { lease, transition, hold, setback, notes: None }
    }

    /// How long a success is kept: 1 h with a value, 5 min without, unless the call or the task says otherwise.
    fn keep(&self, value: &Value) -> Duration {
        let default = match value {
            Value::Unit => Duration::from_secs(5 * 60),
            Value::Json(_) | Value::TooLarge { .. } => Duration::from_secs(60 * 60),
        };
        self.outset.result_ttl.or(self.definition.result_ttl).unwrap_or(default)
    }
}

/// Tells the log what becomes of a job. No payload and no value is in it.
pub(super) fn tell(task: &str, finish: &Finish) {
    let LeaseId { job, run } = finish.lease;
    if let Some(hold) = finish.hold {
        tracing::info!(job.id = %job, job.task = task, job.run = run, what = ?hold.what, length = ?hold.length, "holds");
    }
    match &finish.transition {
        Transition::Succeed { .. } => {
            tracing::debug!(job.id = %job, job.task = task, job.run = run, "succeeded")
        }
        Transition::Release => tracing::debug!(job.id = %job, job.task = task, job.run = run, "released"),
        Transition::PutBack => tracing::debug!(job.id = %job, job.task = task, job.run = run, "put back"),
        Transition::Cancel => tracing::info!(job.id = %job, job.task = task, job.run = run, "cancelled"),
        Transition::Schedule { reason: ScheduledReason::Deferral | ScheduledReason::Limit, due, .. } => {
            tracing::debug!(job.id = %job, job.task = task, job.run = run, ?due, "deferred");
        }
        Transition::Schedule { due, error, .. } => {
            let error = error.as_deref().unwrap_or_default();
            tracing::warn!(job.id = %job, job.task = task, job.run = run, ?due, error, "failed, and is tried again");
        }
        Transition::Kill { reason: DeadReason::Deferrals, .. } => {
            tracing::error!(job.id = %job, job.task = task, job.run = run, "dead: deferred too often");
        }
        Transition::Kill { reason, error } => {
            let error = error.as_deref().unwrap_or_default();
            tracing::error!(job.id = %job, job.task = task, job.run = run, %reason, error, "dead");
        }
    }
}
