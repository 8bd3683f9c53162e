//! Where those who wait and those who write meet: one hub for all handles on one file in this process.
//!
//! The writer tells it the news of each commit; what other processes write, `foreign` tells it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use rusqlite::Connection;

use super::bells::Bells;
use super::called::Calls;
use super::ended::Ends;
use super::file_id::FileId;
use super::lanes::{Lane, Lanes};
use super::news::News;
use super::rooms::Rooms;
use crate::clock::Timestamp;
use crate::store::types::WorkerId;

/// The bells, alarms and waiters of one database in this process.
#[derive(Debug, Default)]
pub(super) struct Hub {
    bells: Mutex<Bells>,
    pub(super) ends: Ends,
    pub(super) calls: Calls,
    pub(super) rooms: Rooms,
    watched: AtomicUsize,
}

/// The hubs of the open files of this process.
static HUBS: LazyLock<Mutex<HashMap<FileId, Weak<Hub>>>> = LazyLock::new(Mutex::default);

impl Hub {
    /// The hub of a file, shared by all its handles in this process.
    pub(super) fn of_file(file: &FileId) -> Arc<Self> {
        let mut hubs = HUBS.lock().unwrap_or_else(PoisonError::into_inner);
        hubs.retain(|_, hub| hub.strong_count() > 0);
        if let Some(hub) = hubs.get(file).and_then(Weak::upgrade) {
            return hub;
        }
        let hub = Arc::new(Self::default());
        hubs.insert(file.clone(), Arc::downgrade(&hub));
        hub
    }

    /// The bells, for one change of them.
    pub(super) fn bells(&self) -> MutexGuard<'_, Bells> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anyone waits for what another process may write.
    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire) > 0
    }

    /// Counts someone who waits, until the answer is dropped.
    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        self.watched.fetch_add(1, Ordering::AcqRel);
        Watch(self.clone())
    }

    /// Tells the news of a transaction that began after `tick`, when the clock shows `now`.
    pub(super) fn tell(
        &self,
        tick: u64,
        news: News,
        now: Timestamp,
        connection: &Connection,
        lanes: &mut Lanes,
    ) -> rusqlite::Result<()> {
        let mut bells = self.bells();
        // These first: they are what the request saw at its end, and what is put in below is no news to it.
        for (queue, moment) in &news.moments {
            bells.set_moment(queue, *moment, tick);
        }
        for &lane in &news.ready {
            let Lane { queue, task, .. } = lanes.name(connection, lane)?.clone();
            // A claim that follows in the same turn has looked at it: its end says more.
            let is_told = news.claim.as_ref().is_some_and(|claim| claim.looked_at(&queue, &task));
            if !is_told && !bells.is_rung(&queue, &task) {
                bells.set_right(connection, lanes, &queue, &task, now)?;
            }
        }
        if let Some(claim) = &news.claim {
            bells.set_to_truth(claim, tick);
        }
        for &lane in &news.freed {
            let queue = lanes.name(connection, lane)?.queue.clone();
            if news.claim.as_ref().is_none_or(|claim| claim.queue != queue) {
                for task in bells.shut(&queue) {
                    bells.set_right(connection, lanes, &queue, &task, now)?;
                }
            }
        }
        for (queue, task) in &news.changed {
            bells.set_right(connection, lanes, queue, task, now)?;
        }
        for (queue, task) in &news.waiting {
            if !bells.is_rung(queue, task) {
                bells.set_right(connection, lanes, queue, task, now)?;
            }
        }
        for (queue, moment) in &news.earlier {
            bells.put_in(queue, *moment);
        }
        drop(bells);
        for worker in news.called {
            self.calls.call(worker);
        }
        for stand in news.stands {
            self.rooms.stands(stand);
        }
        if news.is_room_anywhere {
            self.rooms.look(connection, lanes, now)?;
        }
        self.ends.tell(&news.ended, connection)
    }

    /// Forgets a worker that has stopped.
    pub(super) fn forget(&self, worker: WorkerId) {
        self.bells().put_back(worker);
        self.calls.forget(worker);
    }
}

/// Someone waits as long as this lives.
#[derive(Debug)]
pub(super) struct Watch(Arc<Hub>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.watched.fetch_sub(1, Ordering::AcqRel);
    }
}
