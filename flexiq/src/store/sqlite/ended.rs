//! ended: those who wait for the end of a job are told by the step that ends it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::read::{job as row, stored};
use crate::job::JobId;
use crate::store::types::Stored;

/// Those who wait for the end of a job, in this process.
#[derive(Debug, Default)]
pub(super) struct Ends {
    waiters: Mutex<HashMap<JobId, Vec<oneshot::Sender<Stored>>>>,
}

impl Ends {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Vec<oneshot::Sender<Stored>>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait for a job. Look whether it has ended only after this.
    pub(super) fn enter(&self, job: JobId) -> oneshot::Receiver<Stored> {
        let (sender, receiver) = oneshot::channel();
        self.lock().entry(job).or_default().push(sender);
        receiver
    }

    /// Forgets those who have given up waiting for a job.
    pub(super) fn sweep(&self, job: JobId) {
        let mut waiters = self.lock();
        if let Some(senders) = waiters.get_mut(&job) {
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                waiters.remove(&job);
            }
        }
    }

    /// Tells those who wait for one of these jobs, which have ended.
    pub(super) fn tell(&self, ended: &[JobId], connection: &Connection) -> rusqlite::Result<()> {
        if ended.is_empty() || self.lock().is_empty() {
            return Ok(());
        }
        for &job in ended {
            if !self.lock().contains_key(&job) {
                continue;
            }
            match stored(connection, job)? {
                Some(stored) => {
                    for sender in self.lock().remove(&job).unwrap_or_default() {
                        // One that has given up has dropped its end.
                        let _ = sender.send(stored.clone());
                    }
                }
                // Ended, and pruned or deleted at once: dropping the senders says that there is no such job.
                None if row(connection, job)?.is_none() => drop(self.lock().remove(&job)),
                None => {}
            }
        }
        Ok(())
    }

    /// Looks whether jobs that are waited for were ended by another process.
    pub(super) fn look(&self, connection: &Connection) -> rusqlite::Result<()> {
        let awaited: Vec<JobId> = self.lock().keys().copied().collect();
        self.tell(&awaited, connection)
    }
}
