//! What a gate admits: pause, hold, cap and rates of a queue, a task or a partition, decided together.
//!
//! A store asks before it claims, and charges only what it has then claimed: what is refused has spent nothing.

use super::notation::Rate;
use super::rate::Pace;
use crate::clock::Timestamp;

/// What keeps the jobs of a queue, a task or a partition waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Whether nothing starts at all.
    pub is_paused: bool,
    /// Until when a run has said that nothing should start.
    pub held_until: Option<Timestamp>,
    /// Leases at once.
    pub max_concurrent: Option<u32>,
    /// Starts per period, all of which hold.
    pub rates: Vec<Rate>,
}

/// What a gate answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// So many may start, at least one.
    Open(u32),
    /// None may.
    Shut(Shut),
}

/// Why a gate admits nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shut {
    /// It opens when it is resumed.
    Paused,
    /// A run was told from the outside that nothing should start for a while: it opens by itself.
    Held {
        /// When the hold is over.
        until: Timestamp,
    },
    /// As many leases as the cap allows: it opens when one ends.
    Full,
    /// A rate is spent: it opens by itself.
    Spent {
        /// When every rate admits one more, if nothing else starts.
        opens_at: Timestamp,
    },
}

/// The log of a gate's starts, as its store keeps it.
pub trait Log {
    /// Why it cannot be read.
    type Error;

    /// The moment of a start now: never before the newest, also when the clock was stepped back.
    fn moment(&self, now: Timestamp) -> Timestamp {
        now
    }

    /// The moment of the nth newest start, counted from 1; `None` if there are fewer.
    fn nth_newest(&mut self, n: u32) -> Result<Option<Timestamp>, Self::Error>;

    /// Where a spread rate stands.
    fn pace(&mut self, rate: &Rate) -> Result<Pace, Self::Error>;
}

impl Gate {
    /// Whether it never keeps anything waiting.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// How many of `wanted` starts, at least one, are admitted at `now` while `running` leases are held.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn admit<L: Log>(
        &self,
        wanted: u32,
        running: u64,
        now: Timestamp,
        log: &mut L,
    ) -> Result<Verdict, L::Error> {
        if self.is_paused {
            return Ok(Verdict::Shut(Shut::Paused));
        }
        if let Some(until) = self.held_until.filter(|&until| until > now) {
            return Ok(Verdict::Shut(Shut::Held { until }));
        }
        let mut admitted = wanted.min(self.room(running));
        if admitted == 0 {
            return Ok(Verdict::Shut(Shut::Full));
        }
        // Rates go by their log, which may be ahead of the clock; a hold goes by the clock.
        let at = log.moment(now);
        let mut spent_until = None;
        for rate in &self.rates {
            let pace = if rate.spread { log.pace(rate)? } else { Pace::default() };
            // One that is spent by another rate must still be asked when it opens itself.
            let admission = rate.admit(admitted.max(1), at, pace, |n| log.nth_newest(n))?;
            if admission.starts == 0 {
                spent_until = spent_until.max(Some(admission.opens_at));
            }
            admitted = admitted.min(admission.starts);
        }
        Ok(match spent_until {
            Some(opens_at) => Verdict::Shut(Shut::Spent { opens_at }),
            None => Verdict::Open(admitted),
        })
    }

    /// All that keeps one more start waiting, in the order in which [`admit`](Self::admit) names the first of them.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn shut_by<L: Log>(&self, running: u64, now: Timestamp, log: &mut L) -> Result<Vec<Shut>, L::Error> {
        let Self { is_paused, held_until, max_concurrent, rates } = self.clone();
        let alone = [
            Self { is_paused, ..Self::default() },
            Self { held_until, ..Self::default() },
            Self { max_concurrent, ..Self::default() },
            Self { rates, ..Self::default() },
        ];
        let mut shut_by = Vec::new();
        for gate in alone {
            if let Verdict::Shut(shut) = gate.admit(1, running, now, log)? {
                shut_by.push(shut);
            }
        }
        Ok(shut_by)
    }

    /// Leases that the cap still allows.
    fn room(&self, running: u64) -> u32 {
        match self.max_concurrent {
            Some(most) => u32::try_from(u64::from(most).saturating_sub(running)).unwrap_or(u32::MAX),
            None => u32::MAX,
        }
    }
}

impl Verdict {
    /// Starts admitted.
    pub fn starts(self) -> u32 {
        match self {
            Self::Open(starts) => starts,
            Self::Shut(_) => 0,
        }
    }

    /// When it opens by itself, if it does.
    pub fn opens_at(self) -> Option<Timestamp> {
        match self {
            Self::Shut(Shut::Spent { opens_at } | Shut::Held { until: opens_at }) => Some(opens_at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;

    /// Starts, the newest last, of rates that are not spread.
    struct Starts(Vec<i64>);

    impl Log for Starts {
        type Error = Infallible;

        fn nth_newest(&mut self, n: u32) -> Result<Option<Timestamp>, Infallible> {
            let index = self.0.len().checked_sub(n as usize);
            Ok(index.map(|index| Timestamp::from_millis(self.0[index])))
        }

        fn pace(&mut self, _: &Rate) -> Result<Pace, Infallible> {
            Ok(Pace::default())
        }
    }

    fn rate(starts: u32, ms: u64) -> Rate {
        Rate { starts, period: Duration::from_millis(ms), spread: false }
    }

    fn ask(gate: &Gate, wanted: u32, running: u64, now: i64, starts: &[i64]) -> Verdict {
        gate.admit(wanted, running, Timestamp::from_millis(now), &mut Starts(starts.to_vec()))
            .expect("it cannot fail")
    }

    fn spent(opens_at: i64) -> Verdict {
        Verdict::Shut(Shut::Spent { opens_at: Timestamp::from_millis(opens_at) })
    }

    #[test]
    fn without_limits_all_that_is_wanted_is_admitted() {
        assert_eq!(ask(&Gate::default(), 7, 1_000, 0, &[]), Verdict::Open(7));
    }

    #[test]
    fn the_narrowest_of_cap_and_rates_decides() {
        let gate =
            Gate { max_concurrent: Some(5), rates: vec![rate(3, 1_000), rate(4, 60_000)], ..Gate::default() };
        assert_eq!(ask(&gate, 10, 0, 5_000, &[]), Verdict::Open(3));
        assert_eq!(ask(&gate, 10, 3, 5_000, &[0]), Verdict::Open(2));
        assert_eq!(ask(&gate, 10, 5, 5_000, &[]), Verdict::Shut(Shut::Full));
        assert_eq!(ask(&gate, 10, 0, 5_000, &[0, 1, 2]), Verdict::Open(1));
    }

    #[test]
    fn a_cap_that_was_lowered_below_what_runs_admits_nothing() {
        let gate = Gate { max_concurrent: Some(2), ..Gate::default() };
        assert_eq!(ask(&gate, 1, 9, 0, &[]), Verdict::Shut(Shut::Full));
    }

    #[test]
    fn a_gate_opens_when_the_last_of_its_spent_rates_does() {
        let gate = Gate { rates: vec![rate(2, 1_000), rate(3, 60_000), rate(9, 100)], ..Gate::default() };
        assert_eq!(ask(&gate, 1, 0, 500, &[0, 200, 400]), spent(60_000));
        let gate = Gate { rates: vec![rate(3, 60_000), rate(2, 1_000)], ..Gate::default() };
        assert_eq!(ask(&gate, 1, 0, 500, &[0, 200, 400]), spent(60_000));
    }

    #[test]
    fn a_pause_is_named_first_then_a_hold_then_a_cap_then_a_rate() {
        let until = Timestamp::from_millis(9);
        let mut gate = Gate {
            is_paused: true,
            held_until: Some(until),
            max_concurrent: Some(1),
            rates: vec![rate(1, 1_000)],
        };
        assert_eq!(ask(&gate, 1, 1, 8, &[0]), Verdict::Shut(Shut::Paused));
        gate.is_paused = false;
        assert_eq!(ask(&gate, 1, 1, 8, &[0]), Verdict::Shut(Shut::Held { until }));
        assert_eq!(ask(&gate, 1, 0, 9, &[]), Verdict::Open(1), "it is over at its moment");
        assert_eq!(ask(&gate, 1, 1, 10, &[0]), Verdict::Shut(Shut::Full));
        assert_eq!(ask(&gate, 1, 0, 10, &[0]), spent(1_000));
    }

    #[test]
    fn all_that_shuts_a_gate_is_named_and_nothing_else() {
        let until = Timestamp::from_millis(9);
        let gate = Gate {
            is_paused: true,
            held_until: Some(until),
            max_concurrent: Some(1),
            rates: vec![rate(1, 1_000)],
        };
        let all_at = |running, now| {
            let shut_by = gate.shut_by(running, Timestamp::from_millis(now), &mut Starts(vec![0]));
            shut_by.expect("it cannot fail")
        };
        let spent = Shut::Spent { opens_at: Timestamp::from_millis(1_000) };
        assert_eq!(all_at(1, 8), [Shut::Paused, Shut::Held { until }, Shut::Full, spent]);
        assert_eq!(all_at(0, 9), [Shut::Paused, spent]);
        assert_eq!(all_at(0, 1_000), [Shut::Paused]);
    }
}
