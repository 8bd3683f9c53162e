//! The guard of the reaper: after a silence of everyone, or a jump of the clock, the living renew first.

use std::time::Duration;

use flexiq::internals::Timestamp;

/// What is known of the last signs of life.
#[derive(Debug, Default)]
pub(super) struct Guard {
    last: Option<Beat>,
    reap_after: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Beat {
    at: Timestamp,
    lease: Duration,
    /// A longer silence than this means that nobody could beat.
    quiet: Duration,
}

impl Guard {
    /// Someone lives, and beats every so often.
    pub(super) fn beat(&mut self, now: Timestamp, lease: Duration, every: Duration) {
        self.look(now);
        // The beats themselves make a silence: it means nothing below one beat and a quarter.
        let quiet = lease.saturating_sub(every * 2).max(every + every / 4);
        self.last = Some(Beat { at: now, lease, quiet });
    }

    /// Whether leases that have run out may be taken back now.
    pub(super) fn may_reap(&mut self, now: Timestamp) -> bool {
        self.look(now);
        self.reap_after.is_none_or(|after| now >= after)
    }

    /// The moment before which nothing is reaped.
    pub(super) fn reap_after(&self) -> Option<Timestamp> {
        self.reap_after
    }

    /// Notices a silence, or a clock that went backwards. From here on it is known that somebody looks.
    fn look(&mut self, now: Timestamp) {
        if let Some(last) = &mut self.last
            && (last.at > now || now.since(last.at) > last.quiet)
        {
            last.at = now;
            self.reap_after = Some(now + last.lease);
        }
    }
}
