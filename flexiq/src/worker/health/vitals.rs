//! The signs of a worker's life: pump and heartbeat leave a mark each time they have come round, and who asks looks how old
//! the marks are.
//!
//! A pump with nothing to do would not come round for hours, so a tick that it must take rouses it. All by the monotonic
//! clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Health, Trouble};
use crate::clock::Clock;
use crate::worker::away::Away;

/// Between two ticks of the pump.
const TICK: Duration = Duration::from_secs(10);

/// A loop that has missed so many rounds stands still: one late round is a busy machine.
const MISSED: u32 = 3;

/// What tells whether a worker is well.
#[derive(Debug)]
pub(in crate::worker) struct Vitals {
    clock: Clock,
    pump: Pulse,
    heartbeat: Arc<Pulse>,
    away: Arc<Away>,
    stop: CancellationToken,
}

impl Vitals {
    pub(in crate::worker) fn new(
        clock: &Clock,
        heartbeat: Arc<Pulse>,
        away: Arc<Away>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let pump = Pulse::new(TICK, clock.elapsed());
        Arc::new(Self { clock: clock.clone(), pump, heartbeat, away, stop })
    }

    /// Marks each tick, for ever. Polled by the task that polls the pump, so that it stands still when the pump does.
    pub(in crate::worker) async fn tick_with_pump(&self) {
        loop {
            let now = self.clock.elapsed();
            self.pump.beat(now);
            self.clock.reach(now.saturating_add(TICK)).await;
        }
    }

    /// How the worker is now.
    pub(in crate::worker) fn health(&self) -> Health {
        let now = self.clock.elapsed();
        let troubles = [
            self.pump.still(now).map(Trouble::PumpStill),
            self.heartbeat.still(now).map(Trouble::HeartbeatStill),
            self.away.is_away().then_some(Trouble::StoreAway),
            self.stop.is_cancelled().then_some(Trouble::Stopping),
        ];
        Health { troubles: troubles.into_iter().flatten().collect() }
    }
}

/// The mark of one loop.
#[derive(Debug)]
pub(in crate::worker) struct Pulse {
    /// How long a round may take.
    round: Duration,
    /// When it came round last, in milliseconds of the monotonic clock.
    last: AtomicU64,
}

impl Pulse {
    pub(in crate::worker) fn new(round: Duration, now: Duration) -> Self {
        Self { round, last: AtomicU64::new(millis(now)) }
    }

    /// The loop has come round.
    pub(in crate::worker) fn beat(&self, now: Duration) {
        self.last.store(millis(now), Ordering::Relaxed);
    }

    /// For how long it has stood still, if it does.
    fn still(&self, now: Duration) -> Option<Duration> {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        let since = now.saturating_sub(last);
        (since > self.round.saturating_mul(MISSED)).then_some(since)
    }
}

fn millis(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
