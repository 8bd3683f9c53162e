//! Where the leases lie that this handle has claimed, so that a beat asks one queue for each instead of all.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::name::Name;
use crate::store::types::{LeaseId, Turn, TurnAnswer};

/// The queues of leases. One that is not known here is looked for in every queue.
#[derive(Default)]
pub(super) struct Leased(Mutex<HashMap<LeaseId, Name>>);

impl Leased {
    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseId, Name>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows what a turn has finished and claimed.
    pub(super) fn follow(&self, turn: &Turn, answer: &TurnAnswer) {
        let mut queues = self.lock();
        for finish in &turn.finishes {
            queues.remove(&finish.lease);
        }
        for claimed in &answer.claimed {
            queues.insert(claimed.lease, turn.queue.clone());
        }
    }

    /// Whether a lease may lie in this queue.
    pub(super) fn may_lie_in(&self, lease: &LeaseId, queue: &Name) -> bool {
        self.lock().get(lease).is_none_or(|known| known == queue)
    }

    /// These are lost.
    pub(super) fn forget(&self, lost: &[LeaseId]) {
        let mut queues = self.lock();
        for lease in lost {
            queues.remove(lease);
        }
    }
}
