//! The guard of the reaper: after a silence of everyone, or a jump of the clock, the living renew first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use flexiq::internals::{Beat, Name, Timestamp};

use super::manner::Manner;

/// Who guards what: the workers, and where each queue lies by itself, the leases of each.
#[derive(Debug, Default)]
pub(super) struct Guards {
    of_workers: Guard,
    of_queues: BTreeMap<Name, Guard>,
    /// And of each named limit of which something is left.
    of_limits: BTreeMap<Name, Guard>,
}

impl Guards {
    /// Someone lives, and beats every so often.
    pub(super) fn beat(&mut self, now: Timestamp, lease: Duration, every: Duration) {
        self.of_workers.beat(now, lease, every);
        for guard in self.of_queues.values_mut() {
            guard.beat(now, lease, every);
        }
    }

    /// A queue is known from now on. That is a sign of life, too.
    pub(super) fn know(&mut self, manner: Manner, now: Timestamp, queue: &Name) {
        if manner == Manner::Redis && !self.of_queues.contains_key(queue) {
            let mut guard = Guard::default();
            guard.beat(now, LEASE, LEASE * 3 / 10);
            self.of_queues.insert(queue.clone(), guard);
        }
    }

    /// Somebody lives and uses a limit, or is granted a permit of it.
    pub(super) fn use_limit(&mut self, manner: Manner, now: Timestamp, limit: &Name) {
        if manner == Manner::Redis && !self.of_limits.contains_key(limit) {
            let mut guard = Guard::default();
            guard.beat(now, LEASE, LEASE * 3 / 10);
            self.of_limits.insert(limit.clone(), guard);
        }
    }

    /// A beat looks after the limits that are in use, and only they are guarded.
    pub(super) fn beat_limits(&mut self, now: Timestamp, beat: &Beat, in_use: &BTreeSet<Name>) {
        self.of_limits.retain(|limit, _| in_use.contains(limit));
        for guard in self.of_limits.values_mut() {
            guard.beat(now, beat.lease, beat.every);
        }
    }

    pub(super) fn of_limit(&mut self, limit: &Name) -> &mut Guard {
        self.of_limits.get_mut(limit).unwrap_or(&mut self.of_workers)
    }

    pub(super) fn of_workers(&mut self) -> &mut Guard {
        &mut self.of_workers
    }

    pub(super) fn of_queue(&mut self, queue: &Name) -> &mut Guard {
        self.of_queues.get_mut(queue).unwrap_or(&mut self.of_workers)
    }

    /// The moment before which no worker is found silent.
    pub(super) fn workers_after(&self) -> Option<Timestamp> {
        self.of_workers.reap_after
    }

    /// The moment before which nothing of a queue is reaped.
    pub(super) fn reap_after(&self, queue: &Name) -> Option<Timestamp> {
        self.of_queues.get(queue).unwrap_or(&self.of_workers).reap_after
    }
}

/// Of a queue in which nobody has beaten yet.
const LEASE: Duration = Duration::from_secs(10);

/// What is known of the last signs of life.
#[derive(Debug, Default)]
pub(super) struct Guard {
    last: Option<Sign>,
    reap_after: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Sign {
    at: Timestamp,
    lease: Duration,
    /// A longer silence than this means that nobody could beat.
    quiet: Duration,
}

impl Guard {
    fn beat(&mut self, now: Timestamp, lease: Duration, every: Duration) {
        self.look(now);
        // The beats themselves make a silence: it means nothing below one beat and a quarter.
        let quiet = lease.saturating_sub(every * 2).max(every + every / 4);
        self.last = Some(Sign { at: now, lease, quiet });
    }

    /// Whether leases that have run out may be taken back now.
    pub(super) fn may_reap(&mut self, now: Timestamp) -> bool {
        self.look(now);
        self.reap_after.is_none_or(|after| now >= after)
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
