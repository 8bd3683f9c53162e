//! The leases that a worker holds: the pump adds and removes them, the heartbeat renews them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::control::{Control, Stop};
use crate::store::{Lapse, LeaseId};
use crate::task::Kind;

/// The leases that a worker holds, each until its finish is answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Leases {
    held: Arc<Mutex<HashMap<LeaseId, Held>>>,
}

/// A lease, and the run that goes with it.
#[derive(Debug)]
struct Held {
    control: Arc<Control>,
    kind: Kind,
    task: &'static str,
    lapse: Lapse,
    /// Another worker has the job: not renewed any more.
    is_lost: bool,
    /// The body has returned or was dropped; its finish is on the way.
    has_ended: bool,
}

impl Leases {
    pub(super) fn add(&self, lease: LeaseId, control: Arc<Control>, kind: Kind, task: &'static str) {
        let held = Held { control, kind, task, lapse: Lapse::Loss, is_lost: false, has_ended: false };
        self.lock().insert(lease, held);
    }

    /// The body of this run is gone.
    pub(super) fn end(&self, lease: LeaseId) {
        if let Some(held) = self.lock().get_mut(&lease) {
            held.has_ended = true;
        }
    }

    /// The finish of this run was answered.
    pub(super) fn remove(&self, lease: LeaseId) {
        self.lock().remove(&lease);
    }

    /// What a beat renews.
    pub(super) fn to_renew(&self) -> Vec<(LeaseId, Lapse)> {
        self.lock()
            .iter()
            .filter(|(_, held)| !held.is_lost)
            .map(|(lease, held)| (*lease, held.lapse))
            .collect()
    }

    /// Tells a run that its lease is another worker's.
    pub(super) fn lose(&self, lease: LeaseId) {
        if let Some(held) = self.lock().get_mut(&lease) {
            held.is_lost = true;
            held.control.stop(Stop::LeaseLost);
        }
    }

    /// Tells a run that its job was cancelled.
    pub(super) fn cancel(&self, lease: LeaseId) {
        if let Some(held) = self.lock().get(&lease) {
            held.control.stop(Stop::Cancelled);
        }
    }

    /// Tells every run that the grace is over. From now on their leases lapse as releases: whatever keeps them from
    /// being finished is no fault of their jobs.
    pub(super) fn shut_down(&self) {
        for held in self.lock().values_mut() {
            held.lapse = Lapse::Release;
            held.control.stop(Stop::Shutdown);
        }
    }

    /// Task names of the plain functions that are still running.
    pub(super) fn running_plain(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self
            .lock()
            .values()
            .filter(|held| held.kind == Kind::Plain && !held.has_ended)
            .map(|held| held.task)
            .collect();
        names.sort_unstable();
        names
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseId, Held>> {
        // Each change above is one assignment or call: a poisoned lock hides nothing half done.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
