//! Schedules that are due: the store tells a worker of them, which works out the next tick and sends it.
//!
//! They are sent by the heartbeat's thread, so that no task holds them up. What is not sent, another worker is told of:
//! nothing here is tried again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::job::JobId;
use crate::name::Name;
use crate::policy::{Plan, Seen, plan};
use crate::queue::Queue;
use crate::store::{DueTick, Tick, Ticked};

/// So many are under way at once: at midnight all of them may be due.
const MOST_AT_ONCE: usize = 32;

/// The schedules that a worker was told of.
#[derive(Clone)]
pub(super) struct Ticks(Arc<Shared>);

struct Shared {
    handle: Queue,
    /// What is not sent yet, by queue and name.
    told: Mutex<BTreeMap<(Name, Name), DueTick>>,
    came: Notify,
}

impl Ticks {
    pub(super) fn new(handle: Queue) -> Self {
        Self(Arc::new(Shared { handle, told: Mutex::default(), came: Notify::new() }))
    }

    /// The store has told of these.
    pub(super) fn told(&self, ticks: Vec<DueTick>) {
        if ticks.is_empty() {
            return;
        }
        self.lock().extend(ticks.into_iter().map(|due| ((due.queue.clone(), due.name.clone()), due)));
        self.0.came.notify_one();
    }

    /// Sends what comes, for ever.
    pub(super) async fn keep(&self) {
        loop {
            self.send().await;
            self.0.came.notified().await;
        }
    }

    /// Sends what is there.
    pub(super) async fn send(&self) {
        let mut under_way = JoinSet::new();
        while let Some(due) = self.next() {
            under_way.spawn(self.clone().advance(due));
            if under_way.len() >= MOST_AT_ONCE {
                under_way.join_next().await;
            }
        }
        while under_way.join_next().await.is_some() {}
    }

    fn next(&self) -> Option<DueTick> {
        self.lock().pop_first().map(|(_, due)| due)
    }

    async fn advance(self, due: DueTick) {
        let (queue, name) = (due.queue.clone(), due.name.clone());
        let Plan { runs, next } = match plan(&due.cron, due.catch_up, due.seen, due.now) {
            Ok(plan) => plan,
            Err(error) => {
                tracing::error!(%queue, schedule = %name, %error, "this worker cannot work out the next tick");
                return;
            }
        };
        if !runs && matches!(due.seen, Seen::Tick(_)) {
            tracing::warn!(%queue, schedule = %name, "no worker was there for a tick, which is passed over");
        }
        let max_pending = self.0.handle.declared_limits(&queue).max_pending;
        let tick = Tick { due, next, job: runs.then(JobId::new), max_pending };
        match self.0.handle.store().tick(tick).await {
            Ok(Ticked::Done | Ticked::Late) => {}
            Ok(Ticked::Skipped) => {
                tracing::warn!(%queue, schedule = %name, "a tick is skipped: max_pending leaves no room for its job");
            }
            Err(error) => {
                tracing::debug!(%queue, schedule = %name, %error, "a tick is left to whoever is told next");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Name, Name), DueTick>> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticks").field("told", &self.lock().len()).finish_non_exhaustive()
    }
}
