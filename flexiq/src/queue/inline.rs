//! A handle that lets something follow each of its enqueues: how a test runs jobs at once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::{Queue, Shared};
use crate::job::JobId;
use crate::store::Enqueued;

/// What follows an enqueue, before that is answered.
pub(crate) trait Follow: Send + Sync {
    /// These jobs have just been stored, or were found.
    fn follow(&self, jobs: Vec<JobId>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl Queue {
    /// The same store, and `follow` after each enqueue.
    pub(crate) fn followed_by(&self, follow: Arc<dyn Follow>) -> Self {
        Self { shared: Arc::new(Shared { follow: Some(follow), ..(*self.shared).clone() }) }
    }

    pub(super) async fn follow(&self, stored: &[Enqueued]) {
        if let Some(follow) = &self.shared.follow {
            follow.follow(stored.iter().map(|stored| stored.id).collect()).await;
        }
    }
}
