//! What follows a run: retry, deferral, death. Failures, deferrals and losses are three counters with three budgets,
//! and the back-off grows with failures alone.

use std::time::Duration;

use super::notation::Backoff;
use crate::clock::Timestamp;
use crate::job::{After, DeadReason, Due, Outcome, ScheduledReason, Transition, cut_error};

/// A deferral waits at least this long, so that a task which always defers cannot turn its queue hot.
pub const SHORTEST_DEFERRAL: Duration = Duration::from_millis(10);

/// How much of each kind of ending a job is forgiven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Failures forgiven; one more ends the job as dead.
    pub max_retries: u32,
    /// How long a failed job waits.
    pub backoff: Backoff,
    /// Deferrals forgiven; one more ends the job as dead. `None` is without end.
    pub max_deferrals: Option<u32>,
    /// Lost leases forgiven; one more ends the job as dead.
    pub max_losses: u32,
}

impl Budgets {
    /// Ten retries with back-off from one second to ten minutes, deferrals without end, three losses.
    pub const DEFAULT: Self = Self {
        max_retries: 10,
        backoff: Backoff::Doubling { first: Duration::from_secs(1), largest: Duration::from_secs(600) },
        max_deferrals: None,
        max_losses: 3,
    };
}

impl Backoff {
    /// The wait after the `failures`th failure, counted from 1, without jitter.
    pub fn wait(self, failures: u32) -> Duration {
        match self {
            Self::Fixed(wait) => wait,
            Self::Doubling { first, largest } => {
                let doublings = failures.saturating_sub(1).min(31);
                first.saturating_mul(1 << doublings).min(largest)
            }
        }
    }

    /// The wait with jitter: `chance` from 0 to 1 moves it evenly from 75 % to 125 %, so that jobs which failed
    /// together do not come back together. A fixed back-off stays as written.
    fn jittered(self, failures: u32, chance: f64) -> Duration {
        let wait = self.wait(failures);
        match self {
            Self::Fixed(_) => wait,
            Self::Doubling { .. } => wait.mul_f64(0.75 + chance.clamp(0.0, 1.0) / 2.0),
        }
    }
}

/// Counters of a job before the run that has now ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Failures before this run.
    pub failures: u32,
    /// Deferrals before this run.
    pub deferrals: u32,
}

/// What becomes of a job whose run ended with `outcome`.
///
/// `keep` is how long a success is kept, `now` the store's moment as the worker knows it, and `chance`, from 0 to 1,
/// the jitter.
pub fn after_run(
    outcome: Outcome,
    counters: Counters,
    budgets: &Budgets,
    keep: Duration,
    now: Timestamp,
    chance: f64,
) -> Transition {
    match outcome {
        Outcome::Succeeded(value) => Transition::Succeed { value, keep },
        Outcome::Released => Transition::Release,
        Outcome::Cancelled => Transition::Cancel,
        Outcome::Undecodable { error } => {
            Transition::Kill { reason: DeadReason::Decode, error: Some(cut_error(error)) }
        }
        Outcome::Deferred(due) => after_deferral(due, counters, budgets, now),
        Outcome::Failed { error, after } => after_failure(cut_error(error), after, counters, budgets, chance),
    }
}

fn after_deferral(due: Due, counters: Counters, budgets: &Budgets, now: Timestamp) -> Transition {
    if budgets.max_deferrals.is_some_and(|most| counters.deferrals >= most) {
        return Transition::Kill { reason: DeadReason::Deferrals, error: None };
    }
    let due = match due {
        Due::In(wait) => Due::In(wait.max(SHORTEST_DEFERRAL)),
        Due::At(moment) if moment < now + SHORTEST_DEFERRAL => Due::In(SHORTEST_DEFERRAL),
        later => later,
    };
    Transition::Schedule { reason: ScheduledReason::Deferral, due, error: None }
}

fn after_failure(
    error: String,
    after: After,
    counters: Counters,
    budgets: &Budgets,
    chance: f64,
) -> Transition {
    let failures = counters.failures.saturating_add(1);
    let error = Some(error);
    let wait = match after {
        After::Never => return Transition::Kill { reason: DeadReason::Never, error },
        _ if failures > budgets.max_retries => {
            return Transition::Kill { reason: DeadReason::Failures, error };
        }
        After::Delay(wait) => wait,
        After::Backoff => budgets.backoff.jittered(failures, chance),
    };
    Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(wait), error }
}

/// Whether a job that has now lost its worker `losses` times has run out of its budget.
pub fn is_poison(losses: u32, max_losses: u32) -> bool {
    losses > max_losses
}
