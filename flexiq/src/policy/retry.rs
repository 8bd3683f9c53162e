//! What follows a run: retry, deferral, death. Failures, deferrals and losses are three counters with three budgets,
//! and the back-off grows with failures alone.

use std::time::Duration;

use super::notation::Backoff;
use crate::clock::Timestamp;
use crate::job::{After, DeadReason, Due, Hold, Outcome, ScheduledReason, Transition, cut_error};

/// A deferral or a hold lasts at least this long, so that a task which always defers cannot turn its queue hot.
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
        Outcome::Limited(_) if is_deferred_too_often(counters, budgets) => {
            Transition::Kill { reason: DeadReason::Deferrals, error: None }
        }
        // A moment of the store, which its clock alone can judge.
        Outcome::Limited(due) => Transition::Schedule { reason: ScheduledReason::Limit, due, error: None },
        Outcome::Held(_) if is_deferred_too_often(counters, budgets) => {
            Transition::Kill { reason: DeadReason::Deferrals, error: None }
        }
        Outcome::Held(_) => Transition::PutBack,
        Outcome::Failed { error, after } => after_failure(cut_error(error), after, counters, budgets, chance),
        Outcome::Panicked { error } => {
            let error = cut_error(format!("panicked: {error}"));
            after_failure(error, After::Backoff, counters, budgets, chance)
        }
        Outcome::TimedOut(limit) => {
            let error = format!("timeout: it ran longer than {limit:?}");
            after_failure(error, After::Backoff, counters, budgets, chance)
        }
    }
}

fn after_deferral(due: Due, counters: Counters, budgets: &Budgets, now: Timestamp) -> Transition {
    if is_deferred_too_often(counters, budgets) {
        return Transition::Kill { reason: DeadReason::Deferrals, error: None };
    }
    let due = match due {
        Due::In(wait) => Due::In(wait.max(SHORTEST_DEFERRAL)),
        Due::At(moment) if moment < now + SHORTEST_DEFERRAL => Due::In(SHORTEST_DEFERRAL),
        later => later,
    };
    Transition::Schedule { reason: ScheduledReason::Deferral, due, error: None }
}

fn is_deferred_too_often(counters: Counters, budgets: &Budgets) -> bool {
    budgets.max_deferrals.is_some_and(|most| counters.deferrals >= most)
}

/// What shall be held after a run that ended with `outcome`.
pub fn hold_of(outcome: &Outcome) -> Option<Hold> {
    match outcome {
        Outcome::Held(hold) => Some(Hold { length: hold.length.max(SHORTEST_DEFERRAL), ..*hold }),
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::job::Value;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    const KEEP: Duration = Duration::from_secs(300);

    fn failed(after: After) -> Outcome {
        Outcome::Failed { error: "boom".into(), after }
    }

    fn decide(outcome: Outcome, counters: Counters, budgets: &Budgets) -> Transition {
        after_run(outcome, counters, budgets, KEEP, NOW, 0.5)
    }

    fn wait_of(transition: &Transition) -> Duration {
        match transition {
            Transition::Schedule { due: Due::In(wait), .. } => *wait,
            other => panic!("not scheduled: {other:?}"),
        }
    }

    #[test]
    fn ten_default_retries_span_about_seventeen_minutes() {
        let waits: Duration = (1..=10).map(|failures| Budgets::DEFAULT.backoff.wait(failures)).sum();
        assert_eq!(waits, Duration::from_secs(1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256 + 512));
        assert_eq!(Budgets::DEFAULT.backoff.wait(11), Duration::from_secs(600));
    }

    #[test]
    fn three_retries_are_at_most_four_failed_runs() {
        let budgets = Budgets { max_retries: 3, ..Budgets::DEFAULT };
        let dead_after = (0..).find(|&failures| {
            let counters = Counters { failures, deferrals: 0 };
            matches!(decide(failed(After::Backoff), counters, &budgets), Transition::Kill { .. })
        });
        assert_eq!(dead_after, Some(3));
    }

    #[test]
    fn a_job_without_retries_is_dead_at_its_first_failure() {
        let budgets = Budgets { max_retries: 0, ..Budgets::DEFAULT };
        for after in [After::Backoff, After::Delay(Duration::from_secs(1))] {
            let transition = decide(failed(after), Counters::default(), &budgets);
            assert_eq!(
                transition,
                Transition::Kill { reason: DeadReason::Failures, error: Some("boom".into()) }
            );
        }
    }

    #[test]
    fn never_is_dead_at_once_and_says_so() {
        let transition = decide(failed(After::Never), Counters::default(), &Budgets::DEFAULT);
        assert_eq!(transition, Transition::Kill { reason: DeadReason::Never, error: Some("boom".into()) });
    }

    #[test]
    fn a_payload_that_does_not_fit_is_dead_whatever_is_left_of_the_budget() {
        let transition =
            decide(Outcome::Undecodable { error: "month".into() }, Counters::default(), &Budgets::DEFAULT);
        assert_eq!(transition, Transition::Kill { reason: DeadReason::Decode, error: Some("month".into()) });
    }

    #[test]
    fn a_moment_that_is_over_defers_for_the_shortest_time() {
        let deferred = |due| decide(Outcome::Deferred(due), Counters::default(), &Budgets::DEFAULT);
        assert_eq!(wait_of(&deferred(Due::At(NOW))), SHORTEST_DEFERRAL);
        assert_eq!(wait_of(&deferred(Due::In(Duration::ZERO))), SHORTEST_DEFERRAL);
        let later = Due::At(NOW + Duration::from_secs(60));
        assert_eq!(
            deferred(later),
            Transition::Schedule { reason: ScheduledReason::Deferral, due: later, error: None }
        );
    }

    #[test]
    fn deferrals_end_only_past_their_own_budget() {
        let budgets = Budgets { max_retries: 0, max_deferrals: Some(5), ..Budgets::DEFAULT };
        let deferred =
            |deferrals| decide(Outcome::Deferred(Due::NOW), Counters { failures: 0, deferrals }, &budgets);
        assert!(matches!(deferred(4), Transition::Schedule { .. }));
        assert_eq!(deferred(5), Transition::Kill { reason: DeadReason::Deferrals, error: None });
    }

    #[test]
    fn three_losses_are_forgiven_and_the_fourth_is_not() {
        assert!(!is_poison(3, 3));
        assert!(is_poison(4, 3));
    }

    proptest! {
        #[test]
        fn the_back_off_grows_with_failures_alone(failures in 0..9u32, deferrals in 0..1_000u32, chance in 0.0..=1.0) {
            let wait = |deferrals| {
                let counters = Counters { failures, deferrals };
                wait_of(&after_run(failed(After::Backoff), counters, &Budgets::DEFAULT, KEEP, NOW, chance))
            };
            prop_assert_eq!(wait(0), wait(deferrals));
            let plain = Budgets::DEFAULT.backoff.wait(failures + 1);
            prop_assert!(wait(0) >= plain.mul_f64(0.7499) && wait(0) <= plain.mul_f64(1.2501));
        }

        #[test]
        fn the_back_off_never_shrinks_and_never_passes_its_largest(
            first in 1..100_000u64, largest in 1..10_000_000u64, failures in 1..u32::MAX,
        ) {
            let largest = Duration::from_millis(largest.max(first));
            let backoff = Backoff::Doubling { first: Duration::from_millis(first), largest };
            prop_assert!(backoff.wait(failures) <= backoff.wait(failures.saturating_add(1)));
            prop_assert!(backoff.wait(failures) <= largest);
            prop_assert_eq!(backoff.wait(1), Duration::from_millis(first));
        }

        #[test]
        fn a_deferral_never_spends_a_retry(failures in 0..100u32, deferrals in 0..100u32, max_retries in 0..5u32) {
            let budgets = Budgets { max_retries, ..Budgets::DEFAULT };
            let transition = decide(Outcome::Deferred(Due::NOW), Counters { failures, deferrals }, &budgets);
            let is_deferral = matches!(transition, Transition::Schedule { reason: ScheduledReason::Deferral, .. });
            prop_assert!(is_deferral);
        }

        #[test]
        fn a_success_is_kept_as_long_as_it_was_told(failures in 0..100u32, deferrals in 0..100u32) {
            let transition = decide(Outcome::Succeeded(Value::Unit), Counters { failures, deferrals }, &Budgets::DEFAULT);
            prop_assert_eq!(transition, Transition::Succeed { value: Value::Unit, keep: KEEP });
        }
    }
}
