//! The fence: a run that a cap counts must not outlive its lease, also when the store is away and nobody can say so.
//!
//! Run by the heartbeat's thread beside the beats, so that neither a task that never yields nor a store that does not
//! answer holds it up. It measures by the monotonic clock, from before the last renewal was sent.

use std::time::Duration;

use super::leases::Leases;
use crate::clock::Clock;

/// Before the lease can end, the run is told, and dropped a second later.
const TOLD_BEFORE: Duration = Duration::from_secs(2);
const DROPPED_BEFORE: Duration = Duration::from_secs(1);
/// Shorter leases are fenced by parts of themselves.
const SHORT: Duration = Duration::from_secs(4);

/// When runs are fenced, counted from the last renewal of their lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence {
    /// The token is cancelled.
    pub(super) tell: Duration,
    /// An async run is dropped.
    pub(super) drop: Duration,
}

impl Fence {
    pub(super) fn of(lease: Duration) -> Self {
        if lease < SHORT {
            Self { tell: lease.mul_f64(0.8), drop: lease.mul_f64(0.9) }
        } else {
            Self { tell: lease - TOLD_BEFORE, drop: lease - DROPPED_BEFORE }
        }
    }
}

/// Fences runs whose lease comes near its end, for ever.
pub(super) async fn keep(leases: &Leases, clock: &Clock) {
    loop {
        match leases.fence(clock.elapsed()) {
            Some(next) => tokio::select! {
                () = clock.reach(next) => {}
                () = leases.nearer() => {}
            },
            None => leases.nearer().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_two_seconds_before_its_lease_can_end_and_dropped_one_second_before() {
        let Fence { tell, drop } = Fence::of(Duration::from_secs(10));
        assert_eq!((tell, drop), (Duration::from_secs(8), Duration::from_secs(9)));
    }

    #[test]
    fn short_leases_are_fenced_by_parts_of_themselves() {
        let Fence { tell, drop } = Fence::of(Duration::from_secs(1));
        assert_eq!((tell, drop), (Duration::from_millis(800), Duration::from_millis(900)));
    }
}
