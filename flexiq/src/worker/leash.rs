//! A leash on the worker of a test: it claims only while it is let off, and tells how far it has come.
//!
//! `testing` holds the hand; the pump asks its leash before it claims, and tells it when nothing more has come in. A worker
//! without one claims whenever it has room.

use std::fmt;
use std::pin::Pin;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::permits::Permits;
use crate::clock::Timestamp;
use crate::name::Name;
use crate::queue::real_pause;
use crate::store::Finish;

/// How far a worker has come with what it was let off for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Steps of the store are under way.
    Busy,
    /// It waits for bodies alone. The first of them is over its time at this moment of the monotonic clock.
    Bodies { timeout: Option<Duration> },
    /// Nothing of the drain of this number is left that could start, and nothing runs. The worker claims nothing more.
    Drained(u64),
    /// It was called back, and no claim of it is under way.
    Back,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) task: Name,
    pub(crate) finish: Finish,
    pub(crate) at: Timestamp,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Claim, for the drain of this number.
    Go(u64),
    /// Claim nothing more.
    Stay,
}

/// The end that a test holds. Without it the worker claims nothing for ever.
#[derive(Debug)]
pub(crate) struct Hand {
    orders: mpsc::UnboundedSender<Order>,
    stage: watch::Receiver<Stage>,
    ran: mpsc::UnboundedReceiver<Ran>,
    drains: u64,
}

/// The end that the pump has.
pub(super) struct Leash {
    orders: mpsc::UnboundedReceiver<Order>,
    stage: watch::Sender<Stage>,
    ran: mpsc::UnboundedSender<Ran>,
    /// The drain that is under way.
    drain: Option<u64>,
    /// Whether it was called back amid a drain, and has not said yet that it is.
    is_called: bool,
    settling: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A leash, by both its ends.
pub(super) fn leash() -> (Hand, Leash) {
    let (orders, heard) = mpsc::unbounded_channel();
    let (stage, seen) = watch::channel(Stage::Busy);
    let (ran, told) = mpsc::unbounded_channel();
    let hand = Hand { orders, stage: seen, ran: told, drains: 0 };
    (hand, Leash { orders: heard, stage, ran, drain: None, is_called: false, settling: None })
}

impl Hand {
    /// Lets the worker off until nothing is left that could start; gives up when nothing but bodies has been at work for
    /// `patience` of real time. Dropping it ends the drain.
    pub(crate) async fn drain(&mut self, patience: Duration) -> Stage {
        self.drains += 1;
        let _ = self.orders.send(Order::Go(self.drains));
        let back = CallBack(&self.orders);
        let mut given_up = None;
        loop {
            let stage = *self.stage.borrow_and_update();
            let told = match stage {
                Stage::Drained(drain) if drain == self.drains => return stage,
                // Time may move now: a claim that came later would be put back, with its start spent.
                Stage::Back if given_up.is_some() => return given_up.unwrap_or(stage),
                Stage::Bodies { .. } if given_up.is_none() => tokio::select! {
                    biased;
                    told = self.stage.changed() => told,
                    () = real_pause(patience) => {
                        given_up = Some(stage);
                        back.call();
                        Ok(())
                    }
                },
                _ => self.stage.changed().await,
            };
            told.expect("the worker of this test is gone: it has panicked, or its runtime was shut down");
        }
    }

    /// The runs that have ended since this was last asked.
    pub(crate) fn ran(&mut self) -> Vec<Ran> {
        std::iter::from_fn(|| self.ran.try_recv().ok()).collect()
    }
}

/// Calls the worker back, at the latest when it is dropped.
struct CallBack<'a>(&'a mpsc::UnboundedSender<Order>);

impl CallBack<'_> {
    fn call(&self) {
        // A worker that is gone claims nothing.
        let _ = self.0.send(Order::Stay);
    }
}

impl Drop for CallBack<'_> {
    fn drop(&mut self) {
        self.call();
    }
}

impl Leash {
    /// Whether the worker may claim.
    pub(super) fn is_off(&self) -> bool {
        self.drain.is_some()
    }

    /// The next order.
    pub(super) fn poll(&mut self, poller: &mut Poller<'_>) -> Poll<Order> {
        match self.orders.poll_recv(poller) {
            Poll::Ready(Some(order)) => Poll::Ready(order),
            // The hand is gone, and the worker goes soon.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    pub(super) fn obey(&mut self, order: Order) {
        match order {
            Order::Go(drain) => (self.drain, self.is_called) = (Some(drain), false),
            Order::Stay => self.is_called |= self.drain.take().is_some(),
        }
    }

    /// Whether all permits that were given back are back: whoever they call has been rung for then.
    pub(super) fn is_settled(&mut self, permits: &Permits, poller: &mut Poller<'_>) -> bool {
        let settling = self.settling.get_or_insert_with(|| Box::pin(permits.clone().settled()));
        let is_settled = settling.as_mut().poll(poller).is_ready();
        if is_settled {
            self.settling = None;
        }
        is_settled
    }

    /// Tells how far the worker has come: `None` where nothing is left that could start, which ends the drain.
    pub(super) fn tell(&mut self, stage: Option<Stage>) {
        let stage = match (self.drain, stage) {
            (Some(_), Some(stage)) => stage,
            (Some(drain), None) => {
                // At this very moment: whoever hears of it may move the clock before the worker is asked again.
                self.drain = None;
                Stage::Drained(drain)
            }
            (None, Some(Stage::Busy)) => return,
            (None, _) if std::mem::take(&mut self.is_called) => Stage::Back,
            (None, _) => return,
        };
        self.stage.send_replace(stage);
    }

    /// Tells how a run has ended.
    pub(super) fn ran(&self, task: &Name, finish: &Finish, at: Timestamp) {
        let _ = self.ran.send(Ran { task: task.clone(), finish: finish.clone(), at });
    }
}

impl fmt::Debug for Leash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leash").field("drain", &self.drain).finish_non_exhaustive()
    }
}
