//! A caller's hold on its request: whoever gives up before it has begun can be sure that nothing was stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use super::failure::unavailable;
use crate::error::{Effect, Result};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const ABANDONED: u8 = 2;

/// Where a request is: waiting, begun, or abandoned by its caller. Only one of the last two ever follows the first.
#[derive(Debug, Default)]
pub(super) struct Ticket(AtomicU8);

impl Ticket {
    /// The store begins; false if the caller has given up.
    pub(super) fn begin(&self) -> bool {
        self.0.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The caller gives up; false if the store has begun.
    fn abandon(&self) -> bool {
        self.0.compare_exchange(WAITING, ABANDONED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::Acquire) == ABANDONED
    }
}

/// A request that was handed to a thread of the store. Dropping it abandons the request, unless that has begun.
#[derive(Debug)]
pub(super) struct Asked<T> {
    pub(super) ticket: Arc<Ticket>,
    pub(super) answer: oneshot::Receiver<Result<T>>,
}

impl<T> Asked<T> {
    /// Leaves the request to the store: nobody waits for its answer.
    pub(super) fn leave(mut self) {
        self.ticket = Arc::default();
    }

    /// Waits for the answer, for `timeout` of real time at most; as long as it takes if that is the longest there is.
    pub(super) async fn within(mut self, timeout: Duration, place: &str) -> Result<T> {
        let answered = if timeout == Duration::MAX {
            // Without a timer: on a runtime whose time a test has stopped, any goes off as soon as all else waits.
            Ok((&mut self.answer).await)
        } else {
            tokio::time::timeout(timeout, &mut self.answer).await
        };
        let (effect, reason) = match answered {
            Ok(Ok(answer)) => return answer,
            Ok(Err(_)) if self.ticket.abandon() => (Effect::None, "the store is closed".to_owned()),
            Ok(Err(_)) => (Effect::Unknown, "the store was closed meanwhile".to_owned()),
            Err(_) if self.ticket.abandon() => (
                Effect::None,
                format!(
                    "its turn did not come within {timeout:?}: another process holds the lock, or the disk is slow"
                ),
            ),
            Err(_) => (Effect::Unknown, format!("no answer within {timeout:?}")),
        };
        Err(unavailable(place, effect, &reason, None))
    }
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        self.ticket.abandon();
    }
}
