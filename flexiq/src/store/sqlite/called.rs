//! called: tells a worker at once that one of its jobs was cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::store::types::WorkerId;

/// The workers of this process that listen for calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    listening: Mutex<HashMap<WorkerId, Arc<Notify>>>,
}

impl Calls {
    /// Calls a worker, if it is one of this process. A call that finds it busy is kept.
    pub(super) fn call(&self, worker: WorkerId) {
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = listening.get(&worker) {
            notify.notify_one();
        }
    }

    /// Where the worker's calls come in, from now on.
    pub(super) fn listen(&self, worker: WorkerId) -> Arc<Notify> {
        let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.entry(worker).or_default().clone()
    }

    /// The workers that listen.
    pub(super) fn listening(&self) -> Vec<WorkerId> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// The worker has stopped.
    pub(super) fn forget(&self, worker: WorkerId) {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).remove(&worker);
    }
}
