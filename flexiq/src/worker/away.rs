//! A store that is away, or refuses: told once when it goes and once when it is back, and tried seldom meanwhile.
//!
//! Each loop of a worker (a queue's turns, its wait, the heartbeat) has tries of its own; together they try at most twenty
//! times a second.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::error::Error;

/// The shortest and the longest pause between two tries of a loop.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// Between two tries of a worker, whichever loops they are of.
const APART: Duration = Duration::from_millis(50);

/// Whether a worker's store is away.
#[derive(Debug, Default)]
pub(super) struct Away {
    state: Mutex<State>,
    /// A loop that failed was answered: the others need not sleep on.
    back: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Loops whose last try failed, without those that wait: when these are well again shows late.
    failing: usize,
    /// It was told that the store is away.
    is_told: bool,
    /// When one of them tried last, by the monotonic clock.
    tried: Option<Duration>,
}

impl Away {
    /// Whether the last try of any loop has failed; a wait that failed shows at the next beat.
    pub(super) fn is_away(&self) -> bool {
        self.lock().failing > 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tries of one loop.
///
/// Pauses double from 50 ms to 2 s, each shortened at random by up to a half so that workers which lost their store
/// together do not come back together.
#[derive(Debug)]
pub(super) struct Tries {
    away: Arc<Away>,
    /// Its calls may take for ever.
    is_wait: bool,
    /// Until when it pauses, and how long the next pause is; `None` while it is answered.
    pausing: Option<(Duration, Duration)>,
}

impl Tries {
    pub(super) fn new(away: &Arc<Away>) -> Self {
        Self { away: away.clone(), is_wait: false, pausing: None }
    }

    /// The tries of a loop whose calls are answered when something happens.
    pub(super) fn of_wait(away: &Arc<Away>) -> Self {
        Self { away: away.clone(), is_wait: true, pausing: None }
    }

    /// A try was answered.
    pub(super) fn answered(&mut self) {
        if self.pausing.take().is_some() {
            self.recover();
            self.away.back.notify_waiters();
            let mut state = self.away.lock();
            if state.failing == 0 && std::mem::take(&mut state.is_told) {
                tracing::info!("the store is back");
            }
        }
    }

    /// A try has failed. Others are told once, however many loops and tries there are.
    pub(super) fn failed(&mut self, error: &Error, clock: &Clock) {
        let next = match self.pausing {
            Some((_, next)) => next,
            None => {
                let mut state = self.away.lock();
                state.failing += usize::from(!self.is_wait);
                if !std::mem::replace(&mut state.is_told, true) {
                    tracing::error!(%error, "the store is away; the worker tries again until it is back");
                }
                PAUSES[0]
            }
        };
        let pause = next.mul_f64(1.0 - fastrand::f64() / 2.0);
        self.pausing = Some((clock.elapsed() + pause, (next * 2).min(PAUSES[1])));
    }

    /// Waits until this loop may try: at once, unless its last try failed.
    ///
    /// A pause that was not waited for goes on with the next call.
    pub(super) async fn ready(&mut self, clock: &Clock) {
        while let Some((until, next)) = self.pausing {
            let mut back = std::pin::pin!(self.away.back.notified());
            // Heard from here on, not from when it is polled.
            back.as_mut().enable();
            let until = {
                let mut state = self.away.lock();
                let now = clock.elapsed();
                // However few pauses are left, the tries of a worker stay apart.
                let until = until.max(state.tried.map_or(now, |tried| tried + APART));
                if until <= now {
                    state.tried = Some(now);
                    return;
                }
                until
            };
            tokio::select! {
                () = clock.reach(until) => {}
                () = back => self.pausing = Some((clock.elapsed(), next)),
            }
        }
    }

    fn recover(&self) {
        let mut state = self.away.lock();
        state.failing -= usize::from(!self.is_wait);
    }
}

impl Drop for Tries {
    fn drop(&mut self) {
        if self.pausing.is_some() {
            self.recover();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::error::Effect;

    fn error() -> Error {
        let (store, reason) = ("redis://h".into(), "gone".into());
        Error::StoreUnavailable { store, effect: Effect::None, reason, source: None }
    }

    async fn poll_once(future: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = future => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn fifty_loops_that_fail_try_twenty_times_a_second_together() {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(0));
        let away = Arc::new(Away::default());
        let mut loops: Vec<Tries> = (0..50).map(|_| Tries::new(&away)).collect();
        loops.iter_mut().for_each(|tries| tries.failed(&error(), &clock));
        let mut made = 0;
        for _ in 0..10_000 {
            hands.advance(Duration::from_millis(1));
            for tries in &mut loops {
                if poll_once(tries.ready(&clock)).await {
                    made += 1;
                    tries.failed(&error(), &clock);
                }
            }
        }
        assert!((150..=200).contains(&made), "{made} in ten seconds");
    }

    #[tokio::test]
    async fn one_loop_that_is_answered_ends_the_pauses_of_the_others() {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(0));
        let away = Arc::new(Away::default());
        let (mut one, mut other) = (Tries::new(&away), Tries::new(&away));
        for _ in 0..10 {
            other.failed(&error(), &clock);
        }
        one.failed(&error(), &clock);
        let mut ready = Box::pin(other.ready(&clock));
        assert!(!poll_once(&mut ready).await);
        one.answered();
        hands.advance(Duration::from_millis(1));
        assert!(poll_once(ready).await, "it need not sleep on for a second");
    }

    #[tokio::test]
    async fn a_loop_that_is_always_answered_does_not_wake_one_that_fails() {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(0));
        let away = Arc::new(Away::default());
        let (mut well, mut ill) = (Tries::new(&away), Tries::new(&away));
        ill.failed(&error(), &clock);
        for _ in 0..20 {
            hands.advance(Duration::from_millis(1));
            well.answered();
            assert!(!poll_once(ill.ready(&clock)).await);
        }
        assert_eq!(away.lock().failing, 1, "nor does it say that the store is back");
    }
}
