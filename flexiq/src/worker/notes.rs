//! What runs tell of themselves, on its way to the store: at most twice a second, and with the end of a run.
//!
//! Sent by the heartbeat's thread, so that no body waits for it and a body that never yields is heard, too. A run that ends
//! sooner tells all of it with its finish. A store that does not answer is asked again later: nothing is lost by it but time.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::leases::Leases;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::job;
use crate::name::Name;
use crate::store::{LeaseId, Store, Tell, WorkerId};
use crate::task::{RunInfo, Tells};

/// From the first thing that a run tells until it is sent, so that runs which end sooner cost no call.
const GATHERED: Duration = Duration::from_millis(500);
/// Until the next try, after one that failed.
const PAUSE: Duration = Duration::from_secs(2);
/// Runs in one call: a step of the store is bounded.
const MOST_RUNS: usize = 100;

/// What runs tell of themselves.
#[derive(Clone)]
pub(super) struct Notes(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    worker: WorkerId,
    leases: Leases,
    book: Mutex<Book>,
    /// There is something to send.
    came: Notify,
}

#[derive(Default)]
struct Book {
    /// Runs that have something to tell.
    runs: HashMap<LeaseId, Arc<RunInfo>>,
    /// When it is to be sent, by the monotonic clock.
    due: Option<Duration>,
}

impl Notes {
    pub(super) fn new(store: Arc<dyn Store>, worker: WorkerId, leases: Leases) -> Self {
        let (book, came) = Default::default();
        Self(Arc::new(Shared { store, worker, leases, book, came }))
    }

    /// What a run that has ended did not tell.
    pub(super) fn end(&self, lease: LeaseId) -> Option<Box<job::Notes>> {
        let run = self.lock().runs.remove(&lease)?;
        run.notebook.to_tell().map(Box::new)
    }

    /// Sends what is told, for ever. As long as nothing is told, it sleeps.
    pub(super) async fn keep(&self) {
        let clock = self.0.store.clock();
        loop {
            let due = self.lock().due;
            let Some(due) = due else {
                self.0.came.notified().await;
                continue;
            };
            clock.reach(due).await;
            let sent = self.send().await;
            let pause = match &sent {
                Ok(()) => GATHERED,
                Err(error) => {
                    tracing::debug!(%error, "the store has not heard what runs tell: it is told again");
                    PAUSE
                }
            };
            let mut book = self.lock();
            book.due = (!book.runs.is_empty()).then(|| clock.elapsed() + pause);
        }
    }

    /// Sends what is told, once.
    async fn send(&self) -> Result<()> {
        for (queue, runs) in self.to_tell() {
            for piece in runs.chunks(MOST_RUNS) {
                let told = piece.iter().map(|(lease, _, notes)| (*lease, notes.clone())).collect();
                self.0.store.tell(Tell { worker: self.0.worker, queue: queue.clone(), runs: told }).await?;
                let mut book = self.lock();
                for (lease, run, notes) in piece {
                    // Under the lock, so that what comes now finds its run heard of, or is heard of behind this.
                    if run.notebook.were_told(notes) {
                        book.runs.remove(lease);
                    }
                }
            }
        }
        Ok(())
    }

    /// What there is to tell, by queue.
    fn to_tell(&self) -> BTreeMap<Name, Vec<(LeaseId, Arc<RunInfo>, job::Notes)>> {
        let mut queues: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (lease, run) in &self.lock().runs {
            if let Some(notes) = run.notebook.to_tell() {
                queues.entry(run.queue.clone()).or_default().push((*lease, run.clone(), notes));
            }
        }
        queues
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while it is held but an allocation that fails.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tells for Notes {
    // The claim's moment is the store's, and what has passed since is measured: no clock of this host comes into it.
    fn moment(&self, run: &RunInfo) -> Timestamp {
        let since = self.0.store.clock().elapsed().saturating_sub(run.began);
        Timestamp::from_millis(run.claimed_at.as_millis().saturating_add(since.as_millis() as i64))
    }

    fn hear(&self, run: &Arc<RunInfo>) {
        let lease = LeaseId { job: run.job, run: run.run };
        let mut book = self.lock();
        book.runs.insert(lease, run.clone());
        // Looked at after it was entered, so that the end of the run takes what comes later.
        if !self.0.leases.is_running(lease) {
            book.runs.remove(&lease);
        } else if book.due.is_none() {
            book.due = Some(self.0.store.clock().elapsed() + GATHERED);
            self.0.came.notify_one();
        }
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").finish_non_exhaustive()
    }
}
