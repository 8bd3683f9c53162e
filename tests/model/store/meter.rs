//! What a gate with rates, or a named limit, has let through.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use flexiq::internals::{Admission, Pace, Rate, Timestamp, longest};

/// What a gate with rates has let through.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// What each step has started, the newest last. The moments never go back, also when the clock does.
    log: Vec<Started>,
    /// Of each spread rate that was in force, where it stands.
    paces: BTreeMap<(u32, Duration), Pace>,
}

/// What one step has started.
#[derive(Clone, Copy, Debug)]
struct Started {
    step: u64,
    at: Timestamp,
    starts: u32,
    /// Of what may be gone: when it has left every window of its time.
    until: Timestamp,
}

impl Meter {
    pub(super) const fn new() -> Self {
        Self { log: Vec::new(), paces: BTreeMap::new() }
    }

    /// The moment of a start now.
    fn moment(&self, now: Timestamp) -> Timestamp {
        self.log.last().map_or(now, |newest| newest.at.max(now))
    }

    /// How many of so many starts a rate admits now; if none, when it will.
    pub(super) fn admit(&self, rate: &Rate, wanted: u32, now: Timestamp) -> Admission {
        let nth_newest = |n: u32| Ok::<_, Infallible>(self.nth_newest(n));
        let Ok(admission) = rate.admit(wanted, self.moment(now), self.pace(rate), nth_newest);
        admission
    }

    /// The moment of the nth newest start, counted from 1.
    fn nth_newest(&self, n: u32) -> Option<Timestamp> {
        let mut so_far = 0;
        let reaches = |started: &&Started| {
            so_far += started.starts;
            so_far >= n
        };
        self.log.iter().rev().find(reaches).map(|started| started.at)
    }

    /// Where a spread rate stands. One that was not in force is spaced from the newest start all the same.
    fn pace(&self, rate: &Rate) -> Pace {
        let kept = self.paces.get(&(rate.starts, rate.period)).copied().unwrap_or_default();
        match self.log.last() {
            Some(newest) => Pace(kept.0.max(rate.after(1, newest.at, Pace::default()).0)),
            None => kept,
        }
    }

    /// Counts one start of a step. Its first makes the log one longer, and forgets what has left every window that holds.
    pub(super) fn charge(&mut self, step: u64, rates: &[Rate], now: Timestamp) {
        let at = self.moment(now);
        for rate in rates.iter().filter(|rate| rate.spread) {
            let pace = rate.after(1, at, self.pace(rate));
            self.paces.insert((rate.starts, rate.period), pace);
        }
        match self.log.last_mut().filter(|newest| newest.step == step) {
            Some(newest) => newest.starts += 1,
            None => {
                let until = at + longest(rates);
                let until = self.log.last().map_or(until, |newest| newest.until.max(until));
                self.log.push(Started { step, at, starts: 1, until });
                self.forget(at - longest(rates));
            }
        }
    }

    /// Forgets what was started until then, but no more than two at once: a step is bounded. It shows when a longer rate
    /// is set again before all is forgotten: what is still there counts.
    fn forget(&mut self, until: Timestamp) {
        let gone = self.log.iter().take(2).take_while(|started| started.at <= until).count();
        self.log.drain(..gone);
    }

    /// Forgets what has left every window of its time, and of now.
    pub(super) fn forget_over(&mut self, now: Timestamp, longest: Duration) {
        self.log.retain(|started| started.until > now || started.at > now - longest);
        for started in self.log.iter_mut().filter(|started| started.until <= now) {
            started.until = started.at + longest;
        }
        if self.log.is_empty() {
            self.paces.clear();
        }
    }

    /// Whether nothing is left of it.
    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }
}
