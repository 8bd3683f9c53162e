//! Time, as the engine sees it: moments for the store, waiting for the worker.
//!
//! A [`Timestamp`] is a moment on the store's clock. A [`Clock`] tells the moment, measures elapsed time and
//! waits; tests give a manual one and move it by hand, so that nothing sleeps for real. Policy never reads it.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// A moment on the store's clock, in whole milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment `ms` milliseconds after the Unix epoch.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this moment is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Whole milliseconds of a duration, rounded up: a job is never early.
fn ceil_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(ceil_millis(after)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, before: Duration) -> Self {
        Self(self.0.saturating_sub(ceil_millis(before)))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(ceil_millis(after)),
            Err(before) => Self(-i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX)),
        }
    }
}

impl From<Timestamp> for SystemTime {
    fn from(moment: Timestamp) -> Self {
        let distance = Duration::from_millis(moment.0.unsigned_abs());
        if moment.0 < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
    }
}

/// Tells the time and waits for it: the system's clock, or one that a test moves.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    System { origin: Instant },
    Manual(watch::Receiver<Hands>),
}

/// A manual clock's two hands: wall time may be stepped, elapsed time only goes forward.
#[derive(Clone, Copy)]
struct Hands {
    wall: Timestamp,
    elapsed: Duration,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(Source::System { origin: Instant::now() })
    }

    /// A clock that stands still at `start` until its [`ManualClock`] moves it.
    pub fn manual(start: Timestamp) -> (Self, ManualClock) {
        let (hands, seen) = watch::channel(Hands { wall: start, elapsed: Duration::ZERO });
        (Self(Source::Manual(seen)), ManualClock { hands: Arc::new(hands) })
    }

    /// The moment, by the wall clock.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            // Truncated, where everything else rounds up: what is due at a moment is not due before it.
            Source::System { .. } => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(after) => Timestamp(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)),
                Err(_) => Timestamp(0),
            },
            Source::Manual(seen) => seen.borrow().wall,
        }
    }

    /// The moment that a test has set: a store which asks its server for the time takes this instead.
    #[cfg(feature = "redis")]
    pub(crate) fn manual_now(&self) -> Option<Timestamp> {
        match &self.0 {
            Source::System { .. } => None,
            Source::Manual(seen) => Some(seen.borrow().wall),
        }
    }

    /// Time since this clock was made, by the monotonic clock: steps of the wall clock do not show in it.
    pub fn elapsed(&self) -> Duration {
        match &self.0 {
            Source::System { origin } => origin.elapsed(),
            Source::Manual(seen) => seen.borrow().elapsed,
        }
    }

    /// Waits for `duration` of elapsed time from now.
    pub async fn sleep(&self, duration: Duration) {
        self.reach(self.elapsed().saturating_add(duration)).await;
    }

    /// Waits until [`elapsed`](Self::elapsed) has reached `end`: for an end that was set earlier.
    pub async fn reach(&self, end: Duration) {
        match &self.0 {
            Source::System { origin } => match origin.checked_add(end) {
                Some(end) => tokio::time::sleep_until(end.into()).await,
                None => std::future::pending().await,
            },
            Source::Manual(seen) => {
                if seen.clone().wait_for(|hands| hands.elapsed >= end).await.is_err() {
                    // The test dropped the hands: this clock stands still for ever.
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// Waits until the wall clock shows `moment`, as far as it can be told now.
    ///
    /// A clock that is stepped meanwhile makes it early or late: look at [`now`](Self::now) again afterwards.
    pub async fn sleep_until(&self, moment: Timestamp) {
        match &self.0 {
            Source::System { .. } => tokio::time::sleep(moment.since(self.now())).await,
            Source::Manual(seen) => {
                if seen.clone().wait_for(|hands| hands.wall >= moment).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System { .. } => "Clock::system",
            Source::Manual(_) => "Clock::manual",
        })
    }
}

/// The hands of a manual [`Clock`].
#[derive(Clone)]
pub struct ManualClock {
    hands: Arc<watch::Sender<Hands>>,
}

impl ManualClock {
    /// Moves wall time and elapsed time forward, waking who waited for less.
    pub fn advance(&self, by: Duration) {
        self.hands.send_modify(|hands| {
            hands.wall = hands.wall + by;
            hands.elapsed += by;
        });
    }

    /// Sets wall time alone, as an operator or NTP would step it.
    pub fn step_to(&self, wall: Timestamp) {
        self.hands.send_modify(|hands| hands.wall = wall);
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("now", &self.hands.borrow().wall).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_millisecond_counts_as_a_whole_one() {
        let start = Timestamp::from_millis(1_000);
        assert_eq!(start + Duration::from_micros(1), Timestamp::from_millis(1_001));
        assert_eq!(start + Duration::from_millis(5), Timestamp::from_millis(1_005));
    }

    #[test]
    fn a_moment_survives_the_way_through_system_time() {
        for ms in [-1_500, 0, 1, 1_700_000_000_123] {
            let moment = Timestamp::from_millis(ms);
            assert_eq!(Timestamp::from(SystemTime::from(moment)), moment);
        }
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_only_those_whose_time_has_come() {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(0));
        let short = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(1)).await }
        });
        let long = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(9)).await }
        });
        tokio::task::yield_now().await;
        hands.advance(Duration::from_secs(1));
        short.await.expect("the short sleeper wakes");
        assert!(!long.is_finished());
        assert_eq!(clock.now(), Timestamp::from_millis(1_000));
    }
}
