//! How a run is told to stop, and why. Heartbeat and pump tell; the executor obeys.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

/// Why a run should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its job was cancelled.
    Cancelled,
    /// It took longer than its timeout.
    TimedOut,
    /// Its lease is another worker's.
    LeaseLost,
    /// The grace of the shutdown is over.
    Shutdown,
    /// Its lease could not be renewed and may end, and a cap counts it.
    Fenced,
}

/// One run's way of being told to stop.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// What the task itself sees.
    token: CancellationToken,
    /// The first reason holds: what comes later finds the run stopping already.
    reason: OnceLock<Stop>,
    /// Its last moment is over, however much of it was left.
    over: CancellationToken,
}

impl Control {
    /// Tells the run to stop.
    pub(super) fn stop(&self, reason: Stop) {
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// Tells the run to stop, if it was not told before, and gives it no moment more.
    pub(super) fn drop_now(&self, reason: Stop) {
        self.stop(reason);
        self.over.cancel();
    }

    /// Waits until the run is given no moment more.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Why the run was told to stop, if it was.
    pub(super) fn reason(&self) -> Option<Stop> {
        self.reason.get().copied()
    }

    /// Waits until the run is told to stop.
    pub(super) async fn stopped(&self) -> Stop {
        self.token.cancelled().await;
        self.reason().expect("the reason is set before the token")
    }

    /// The token for the task's context.
    pub(super) fn token(&self) -> CancellationToken {
        self.token.clone()
    }
}
