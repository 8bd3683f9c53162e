//! The stages of a shutdown, each with its time.

use std::fmt;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use super::executor::LAST_MOMENT;
use crate::clock::Clock;

/// How long the last outcomes may take to reach the store. In real time, whatever clock the store has.
const LAST_TURN: Duration = Duration::from_millis(900);

/// How far a shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Nothing is claimed any more; runs may end by themselves.
    Grace,
    /// The runs were told to stop, and async ones are dropped a second later.
    LastMoment,
    /// Only plain functions may still run. What has ended is told to the store.
    LastTurn,
    /// The store did not answer in time.
    Over,
}

/// A shutdown under way.
pub(super) struct Stopping {
    stage: Stage,
    clock: Clock,
    timer: Timer,
}

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Stopping {
    /// Begins with the grace.
    pub(super) fn new(clock: &Clock, grace: Duration) -> Self {
        Self { stage: Stage::Grace, clock: clock.clone(), timer: sleep(clock, grace) }
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Goes on to the next stage, and says which it is.
    pub(super) fn advance(&mut self) -> Stage {
        let (stage, timer): (_, Timer) = match self.stage {
            Stage::Grace => (Stage::LastMoment, sleep(&self.clock, LAST_MOMENT)),
            Stage::LastMoment => (Stage::LastTurn, Box::pin(tokio::time::sleep(LAST_TURN))),
            Stage::LastTurn | Stage::Over => (Stage::Over, Box::pin(std::future::pending())),
        };
        (self.stage, self.timer) = (stage, timer);
        stage
    }

    /// Ready when the time of the stage is over.
    pub(super) fn poll(&mut self, poller: &mut Poller<'_>) -> Poll<()> {
        self.timer.as_mut().poll(poller)
    }
}

fn sleep(clock: &Clock, time: Duration) -> Timer {
    let clock = clock.clone();
    Box::pin(async move { clock.sleep(time).await })
}

impl fmt::Debug for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stopping").field(&self.stage).finish()
    }
}
