//! A store that is away: told once when it goes and once when it is back, however often it is tried meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::Error;

/// The shortest and the longest pause between two tries.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// Whether a worker's store is away.
#[derive(Debug, Default)]
pub(super) struct Away {
    is_away: AtomicBool,
}

impl Away {
    /// A call has failed.
    pub(super) fn failed(&self, error: &Error) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "the store is away; the worker tries again until it is back");
        }
    }

    /// A call was answered.
    pub(super) fn answered(&self) {
        if self.is_away.load(Ordering::Relaxed) && self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the store is back");
        }
    }
}

/// Pauses that double from 50 ms to 2 s, each shortened at random by up to a half so that workers which lost their store
/// together do not come back together.
#[derive(Debug)]
pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(super) const fn new() -> Self {
        Self { next: PAUSES[0] }
    }

    pub(super) async fn pause(&mut self, clock: &Clock) {
        // Wait even after the first failure: a store that is down must not turn a loop hot.
        clock.sleep(self.next.mul_f64(1.0 - fastrand::f64() / 2.0)).await;
        self.next = (self.next * 2).min(PAUSES[1]);
    }
}
