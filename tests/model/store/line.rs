//! One key of a named limit: who holds a permit, and who stands in line for one.

use std::collections::HashMap;
use std::time::Duration;

use flexiq::JobId;
use flexiq::internals::{Ask, LeaseId, Rate, Timestamp, longest};

use super::meter::Meter;

/// One key of a named limit.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// The runs that hold a permit, and until when.
    pub(super) permits: HashMap<LeaseId, Timestamp>,
    /// Who waits, in their order; also those who were called.
    pub(super) line: Vec<Waiting>,
    /// Until when nobody is granted one, because a run has said so.
    pub(super) held_until: Option<Timestamp>,
    /// When time lets the first in line have one, as far as was seen.
    pub(super) opens_at: Option<Timestamp>,
    /// What rates count.
    meter: Meter,
    /// The longest period that was asked with: so long a start is kept.
    longest: Duration,
}

/// One who stands in line.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) job: JobId,
    max_concurrent: Option<u32>,
    rates: Vec<Rate>,
    /// Its place in its queue.
    pub(super) ready_at: Timestamp,
    /// What it was told: when it is due by time.
    pub(super) due: Option<Timestamp>,
    /// It was called, and its permit is reserved until then.
    pub(super) reserved_until: Option<Timestamp>,
}

/// When one more permit may be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Now,
    /// When every rate and hold is over.
    At(Timestamp),
    /// Not before a permit is given back, or one that is reserved is taken or lapses.
    ByCall,
}

impl Opening {
    /// When time opens it, if time alone does.
    pub(super) fn by_time(self) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(at),
            Self::Now | Self::ByCall => None,
        }
    }
}

impl Waiting {
    pub(super) fn new(ask: &Ask) -> Self {
        let (max_concurrent, rates) = (ask.max_concurrent, ask.rates.clone());
        let (job, ready_at) = (ask.permit.lease.job, ask.ready_at);
        Self { job, max_concurrent, rates, ready_at, due: None, reserved_until: None }
    }

    /// What it asks with is kept anew.
    pub(super) fn asks(&mut self, ask: &Ask) {
        self.max_concurrent = ask.max_concurrent;
        self.rates = ask.rates.clone();
        self.ready_at = ask.ready_at;
    }
}

impl Named {
    /// Whether nothing is left of it.
    pub(super) fn is_empty(&self) -> bool {
        self.permits.is_empty() && self.line.is_empty() && self.held_until.is_none() && self.meter.is_empty()
    }

    pub(super) fn place_of(&self, job: JobId) -> Option<usize> {
        self.line.iter().position(|waiting| waiting.job == job)
    }

    pub(super) fn leave(&mut self, job: JobId) {
        self.line.retain(|waiting| waiting.job != job);
    }

    /// When one more permit may be granted to who asks so, beside those that are reserved.
    pub(super) fn opening(&self, asks: &Waiting, now: Timestamp) -> Opening {
        let reserved = || self.line.iter().filter(|waiting| waiting.reserved_until.is_some());
        let counted = reserved().filter(|waiting| !waiting.rates.is_empty()).count();
        self.opening_beside(asks, now, reserved().count(), counted)
    }

    /// When one that was called may have the permit that is reserved for it.
    pub(super) fn opening_for_called(&self, asks: &Waiting, now: Timestamp) -> Opening {
        self.opening_beside(asks, now, 0, 0)
    }

    /// Beside so many that are reserved, some of which rates count.
    fn opening_beside(&self, asks: &Waiting, now: Timestamp, reserved: usize, counted: usize) -> Opening {
        if asks.max_concurrent.is_some_and(|most| self.permits.len() + reserved >= most as usize) {
            return Opening::ByCall;
        }
        let wanted = counted as u32 + 1;
        let admitted: Vec<_> = asks.rates.iter().map(|rate| self.meter.admit(rate, wanted, now)).collect();
        let spent_until = admitted.iter().filter(|rate| rate.starts == 0).map(|rate| rate.opens_at).max();
        if spent_until.is_none() && admitted.iter().any(|rate| rate.starts < wanted) {
            return Opening::ByCall;
        }
        let held_until = self.held_until.filter(|&until| until > now);
        spent_until.max(held_until).map_or(Opening::Now, Opening::At)
    }

    /// Counts a permit that was asked for with rates. It is kept for the longest period, whoever has asked with that.
    pub(super) fn charge(&mut self, step: u64, rates: &[Rate], now: Timestamp) {
        if rates.is_empty() {
            return;
        }
        self.longest = self.longest.max(longest(rates));
        let kept = Rate { starts: u32::MAX, period: self.longest, spread: false };
        let rates: Vec<Rate> = rates.iter().cloned().chain([kept]).collect();
        self.meter.charge(step, &rates, now);
    }

    /// Forgets starts that have left every window.
    pub(super) fn forget_over(&mut self, now: Timestamp) {
        self.meter.forget_over(now, Duration::ZERO);
        if self.meter.is_empty() {
            self.longest = Duration::ZERO;
        }
    }
}
