//! Whether a rate admits a start, and when it will: at most so many starts in *any* half-open window of its period.
//!
//! Exact, by the log of starts (a sliding log): the start that would be one too many waits until the one that stands
//! `starts` before it has left the window. A store keeps the log and tells the moment of its nth newest start.

use std::time::Duration;

use super::notation::Rate;
use crate::clock::Timestamp;

/// What a rate admits at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Starts admitted now.
    pub starts: u32,
    /// When one more than these is admitted, if nothing else starts.
    pub opens_at: Timestamp,
}

/// When the next evenly spaced start may come: what a `spread` rate keeps beside its log, in microseconds since the
/// epoch, because a period is rarely a whole number of milliseconds a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace(pub i64);

impl Rate {
    /// How many of `wanted` starts are admitted at `now`.
    ///
    /// `nth_newest(n)` is the moment of the nth newest start in the log, counted from 1; `None` if there are fewer. It is
    /// asked a number of times that grows with the logarithm of `wanted`.
    ///
    /// # Errors
    ///
    /// Those of `nth_newest`.
    pub fn admit<E>(
        &self,
        wanted: u32,
        now: Timestamp,
        pace: Pace,
        mut nth_newest: impl FnMut(u32) -> Result<Option<Timestamp>, E>,
    ) -> Result<Admission, E> {
        // The kth start from now is one too many while the start that stands `starts` before it is in the window.
        let mut leaves = |k: u32| match nth_newest(self.starts - k + 1)? {
            Some(start) => Ok(start + self.period),
            None => Ok(now),
        };
        let (mut admitted, mut refused) = (0, wanted.min(self.starts) + 1);
        while refused - admitted > 1 {
            let k = admitted + (refused - admitted) / 2;
            if leaves(k)? <= now { admitted = k } else { refused = k }
        }
        let window_opens = if admitted < self.starts { leaves(admitted + 1)? } else { now + self.period };
        if !self.spread {
            return Ok(Admission { starts: admitted, opens_at: window_opens });
        }
        let paced = self.paced(now, pace);
        let starts = admitted.min(paced);
        let pace_opens = micros_up(self.after(starts, now, pace).0);
        Ok(Admission {
            starts,
            opens_at: if paced < admitted { pace_opens } else { window_opens.max(pace_opens) },
        })
    }

    /// The pace after `starts` starts at `now`.
    pub fn after(&self, starts: u32, now: Timestamp, pace: Pace) -> Pace {
        Pace(self.first(now, pace).saturating_add(self.interval().saturating_mul(i64::from(starts))))
    }

    /// Evenly spaced starts that are due at `now`.
    fn paced(&self, now: Timestamp, pace: Pace) -> u32 {
        let late = now.as_millis().saturating_mul(1_000) - self.first(now, pace);
        if late < 0 { 0 } else { u32::try_from(late / self.interval() + 1).unwrap_or(u32::MAX) }
    }

    /// The moment of the next evenly spaced start, in microseconds. What was not used is not saved up: an idle task is
    /// late by no more than what a clock of milliseconds cannot tell.
    fn first(&self, now: Timestamp, pace: Pace) -> i64 {
        let now = now.as_millis().saturating_mul(1_000);
        pace.0.max(now.saturating_sub(999))
    }

    /// Microseconds between two evenly spaced starts, rounded up: never more than the rate.
    fn interval(&self) -> i64 {
        i64::try_from(self.period.as_micros().div_ceil(u128::from(self.starts))).unwrap_or(i64::MAX).max(1)
    }
}

/// The first whole millisecond at or after this microsecond.
fn micros_up(micros: i64) -> Timestamp {
    Timestamp::from_millis(micros.div_euclid(1_000) + i64::from(micros.rem_euclid(1_000) > 0))
}

/// The longest period of these rates: how long their log is kept.
pub fn longest(rates: &[Rate]) -> Duration {
    rates.iter().map(|rate| rate.period).max().unwrap_or_default()
}

/// The most starts that any of these rates counts: how much of their log is kept.
pub fn most(rates: &[Rate]) -> u32 {
    rates.iter().map(|rate| rate.starts).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    /// A rate, its log of starts and its pace, as a store keeps them.
    struct Log {
        rate: Rate,
        starts: Vec<Timestamp>,
        pace: Pace,
    }

    impl Log {
        fn new(starts: u32, period: Duration, spread: bool) -> Self {
            Self { rate: Rate { starts, period, spread }, starts: Vec::new(), pace: Pace::default() }
        }

        fn admit(&self, wanted: u32, now: Timestamp) -> Admission {
            let nth_newest = |n: u32| {
                Ok::<_, Infallible>(self.starts.len().checked_sub(n as usize).map(|index| self.starts[index]))
            };
            self.rate.admit(wanted, now, self.pace, nth_newest).expect("it cannot fail")
        }

        /// Starts what is admitted, at most `wanted`.
        fn start(&mut self, wanted: u32, now: Timestamp) -> u32 {
            let starts = self.admit(wanted, now).starts.min(wanted);
            self.starts.extend((0..starts).map(|_| now));
            self.pace = self.rate.after(starts, now, self.pace);
            starts
        }

        /// The most starts in any half-open window of the period.
        fn busiest(&self) -> usize {
            let ends = |from: Timestamp| from + self.rate.period;
            let in_window =
                |from: Timestamp| self.starts.iter().filter(|at| (from..ends(from)).contains(at)).count();
            self.starts.iter().map(|from| in_window(*from)).max().unwrap_or(0)
        }
    }

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + ms)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn an_idle_task_starts_as_many_as_its_rate_at_once_and_the_next_a_period_later() {
        let mut log = Log::new(100, MINUTE, false);
        assert_eq!(log.start(1_000, at(0)), 100);
        assert_eq!(log.admit(1, at(59_999)), Admission { starts: 0, opens_at: at(60_000) });
        assert_eq!(log.start(1_000, at(60_000)), 100, "the window is half open");
    }

    #[test]
    fn a_window_opens_start_by_start() {
        let mut log = Log::new(2, MINUTE, false);
        assert_eq!((log.start(1, at(0)), log.start(1, at(10))), (1, 1));
        assert_eq!(log.admit(5, at(20)), Admission { starts: 0, opens_at: at(60_000) });
        assert_eq!(log.admit(5, at(60_000)), Admission { starts: 1, opens_at: at(60_010) });
    }

    #[test]
    fn a_spread_rate_spaces_its_starts_evenly_and_saves_nothing_up() {
        let mut log = Log::new(100, MINUTE, true);
        assert_eq!(log.start(50, at(0)), 1);
        assert_eq!(log.admit(50, at(599)), Admission { starts: 0, opens_at: at(600) });
        assert_eq!(log.start(50, at(600)), 1);
        assert_eq!(log.start(50, at(30_000)), 1, "half a minute of silence is no credit");
        assert_eq!(log.admit(50, at(30_001)).opens_at, at(30_600));
    }

    #[test]
    fn a_spread_rate_above_a_thousand_a_second_keeps_its_pace() {
        let mut log = Log::new(3_000, Duration::from_secs(1), true);
        let started: u32 = (0..1_000).map(|ms| log.start(100, at(ms))).sum();
        assert!((2_990..=3_000).contains(&started), "{started}");
    }

    proptest! {
        #[test]
        fn no_window_ever_holds_more_than_the_rate(
            starts in 1..20u32,
            period in 1..2_000u64,
            spread: bool,
            steps in prop::collection::vec((0..700i64, 0..30u32), 1..120),
        ) {
            let mut log = Log::new(starts, Duration::from_millis(period), spread);
            let mut now = 0;
            for (pause, wanted) in steps {
                now += pause;
                log.start(wanted, at(now));
            }
            prop_assert!(log.busiest() <= starts as usize, "{} in one window", log.busiest());
        }

        #[test]
        fn what_is_refused_is_admitted_at_the_moment_that_was_told_and_not_before(
            starts in 1..20u32,
            period in 2..2_000u64,
            spread: bool,
            steps in prop::collection::vec((0..700i64, 1..30u32), 1..60),
        ) {
            let mut log = Log::new(starts, Duration::from_millis(period), spread);
            let mut now = 0;
            for (pause, wanted) in steps {
                now += pause;
                log.start(wanted, at(now));
                let Admission { starts, opens_at } = log.admit(u32::MAX, at(now));
                if starts == 0 {
                    prop_assert!(opens_at > at(now));
                    prop_assert_eq!(log.admit(1, opens_at - Duration::from_millis(1)).starts, 0);
                    prop_assert_eq!(log.admit(1, opens_at).starts, 1);
                }
            }
        }

        #[test]
        fn a_rate_with_demand_is_used_up(starts in 1..50u32, period in 100..3_000u64) {
            let mut log = Log::new(starts, Duration::from_millis(period), false);
            let mut now = at(0);
            for _ in 0..5 {
                prop_assert_eq!(log.start(u32::MAX, now), starts);
                now = log.admit(1, now).opens_at;
            }
            prop_assert_eq!(now, at(0) + Duration::from_millis(period) * 5);
        }
    }
}
