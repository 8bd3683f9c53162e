//! What tasks note and tests wait for.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::soon;

/// Lines in the order in which they were noted; shared by its clones.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    lines: Arc<Mutex<Vec<String>>>,
    noted: Arc<Notify>,
}

impl Journal {
    /// Notes a line.
    pub fn note(&self, line: impl Into<String>) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.into());
        self.noted.notify_waiters();
    }

    /// All lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often a line was noted.
    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|noted| *noted == line).count()
    }

    /// Waits until a line was noted so often.
    pub async fn wait_for(&self, line: &str, times: usize) {
        let wait = async {
            loop {
                let noted = self.noted.notified();
                tokio::pin!(noted);
                // Listening before looking: a line noted in between is not missed.
                noted.as_mut().enable();
                if self.count(line) >= times {
                    return;
                }
                noted.await;
            }
        };
        soon(&format!("{line:?} is noted {times} times, beside {:?}", self.lines()), wait).await;
    }
}
