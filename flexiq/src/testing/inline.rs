//! Inline: each enqueue is answered when its jobs have ended.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::driver::Driver;
use super::expect;
use crate::job::JobId;
use crate::queue::Follow;

/// Runs what was enqueued.
pub(super) struct Inline(pub(super) Arc<Mutex<Driver>>);

impl Follow for Inline {
    fn follow(&self, jobs: Vec<JobId>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // Whoever drives already runs these, too: to wait for that would hold up a body for ever.
            let Ok(mut driver) = self.0.try_lock() else { return };
            expect(driver.run_to_their_end(&jobs).await);
        })
    }
}
