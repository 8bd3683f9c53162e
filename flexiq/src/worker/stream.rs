//! The turns of one queue: numbered, one under way at a time, sent again until they are answered.

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::{Duration, Instant};

use super::away::{Away, Tries};
use super::slots::Offer;
use crate::job::{Transition, Value};
use crate::name::Name;
use crate::store::{Claim, Finish, Store, Turn, TurnAnswer, WorkerId};

/// Finishes in one turn, at most: a step of the store is bounded.
const MAX_FINISHES: usize = 1_000;

/// How long a queue may go unheard while the room goes to others. In real time: it is a price, not a promise.
const UNHEARD: Duration = Duration::from_millis(20);

/// The turns of one queue.
pub(super) struct Stream {
    pub(super) queue: Name,
    /// The tasks that may stand in it, by index.
    pub(super) tasks: Vec<usize>,
    /// Its part of the room that several queues want,
    pub(super) weight: u32,
    /// and when its next job would start, were jobs started by weights alone: each takes it one over its weight further.
    pub(super) next: u64,
    /// Whether its last claim left something that could start.
    pub(super) has_more: bool,
    /// Runs that have ended and are not yet told.
    pub(super) finishes: Vec<Finish>,
    /// Whether something may be startable: a claim is due as soon as there is room.
    pub(super) is_hungry: bool,
    /// Whether a bell of this queue was popped, and its claim is still to be sent.
    pub(super) is_woken: bool,
    /// Whether bells of this queue may have been rung that nobody listened for, because there was no room.
    pub(super) is_unheard: bool,
    /// When it was last asked for jobs.
    claimed: Option<Instant>,
    /// Turns made so far.
    number: u64,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    turn: Arc<Turn>,
    offer: Option<Offer>,
    /// When it was first sent, by the monotonic clock: its leases last at most from there.
    sent: Duration,
    answer: Pin<Box<dyn Future<Output = TurnAnswer> + Send>>,
}

/// A turn that was answered.
pub(super) struct Answered {
    pub(super) turn: Arc<Turn>,
    pub(super) offer: Option<Offer>,
    pub(super) sent: Duration,
    pub(super) answer: TurnAnswer,
}

impl Stream {
    pub(super) fn new(queue: Name, tasks: Vec<usize>, weight: u32) -> Self {
        // Hungry at first: what waits may have been rung before this worker was there.
        Self {
            queue,
            tasks,
            weight,
            next: 0,
            has_more: false,
            finishes: Vec::new(),
            is_hungry: true,
            is_woken: false,
            is_unheard: false,
            claimed: None,
            number: 0,
            under_way: None,
        }
    }

    /// Whether it has something to tell or to ask.
    ///
    /// A queue that could not be listened to, because others of the worker filled its room, is asked as soon as there is
    /// room again, but not each time: most often nothing has come.
    pub(super) fn is_due(&self) -> bool {
        let is_overdue = || self.claimed.is_none_or(|claimed| claimed.elapsed() >= UNHEARD);
        !self.is_busy() && (self.is_hungry || !self.finishes.is_empty() || (self.is_unheard && is_overdue()))
    }

    /// Whether a turn is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Which kinds of slots were offered to the claim that is under way.
    pub(super) fn offered(&self) -> [bool; 2] {
        let offer = self.under_way.as_ref().and_then(|under_way| under_way.offer.as_ref());
        offer.map_or([false; 2], |offer| offer.slots.map(|slots| slots > 0))
    }

    /// Whether everything that has ended is told.
    pub(super) fn is_told(&self) -> bool {
        self.finishes.is_empty() && !self.is_busy()
    }

    /// Sends a turn: what has ended, and a claim for the room that is offered.
    pub(super) fn send(
        &mut self,
        worker: WorkerId,
        claim: Option<(Offer, Claim)>,
        store: &Arc<dyn Store>,
        away: &Arc<Away>,
    ) {
        let mut finishes: Vec<Finish> = if self.finishes.len() > MAX_FINISHES {
            self.finishes.drain(..MAX_FINISHES).collect()
        } else {
            mem::take(&mut self.finishes)
        };
        // Those that are alike follow each other, so that a store can take them together.
        finishes.sort_by_key(|finish| match (&finish.transition, &finish.notes) {
            (Transition::Succeed { value: Value::Unit, keep }, None) => (0, finish.lease.run, *keep),
            _ => (1, 0, Duration::ZERO),
        });
        let (offer, claim) = claim.unzip();
        self.number += 1;
        if claim.is_some() {
            self.is_hungry = false;
            self.is_woken = false;
            self.is_unheard = false;
            self.claimed = Some(Instant::now());
        }
        let turn = Arc::new(Turn { worker, queue: self.queue.clone(), number: self.number, finishes, claim });
        let sent = store.clock().elapsed();
        let answer = Box::pin(answer(turn.clone(), store.clone(), away.clone()));
        self.under_way = Some(UnderWay { turn, offer, sent, answer });
    }

    /// Sends the turn that is under way once more, from the runtime that is now current. The store knows its number.
    pub(super) fn send_again(&mut self, store: &Arc<dyn Store>, away: &Arc<Away>) {
        if let Some(under_way) = &mut self.under_way {
            under_way.answer = Box::pin(answer(under_way.turn.clone(), store.clone(), away.clone()));
        }
    }

    /// The answer of the turn under way, once it is there.
    pub(super) fn poll(&mut self, poller: &mut Poller<'_>) -> Poll<Answered> {
        let Some(under_way) = &mut self.under_way else { return Poll::Pending };
        let answer = std::task::ready!(under_way.answer.as_mut().poll(poller));
        let UnderWay { turn, offer, sent, .. } = self.under_way.take().expect("it was just polled");
        Poll::Ready(Answered { turn, offer, sent, answer })
    }
}

/// Sends a turn until it is answered, always with the same number.
async fn answer(turn: Arc<Turn>, store: Arc<dyn Store>, away: Arc<Away>) -> TurnAnswer {
    let mut tries = Tries::new(&away);
    loop {
        match store.turn(turn.clone()).await {
            Ok(answer) => {
                tries.answered();
                return answer;
            }
            Err(error) => tries.failed(&error, store.clock()),
        }
        tries.ready(store.clock()).await;
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("queue", &self.queue)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
