//! tell: what running jobs say of themselves, on its way to the store.

use crate::job::Notes;
use crate::name::Name;
use crate::store::types::{LeaseId, WorkerId};

/// What runs of one queue tell of themselves.
#[derive(Clone, Debug)]
pub struct Tell {
    /// The worker that runs them.
    pub worker: WorkerId,
    /// The queue.
    pub queue: Name,
    /// The runs, each once, and what they tell.
    pub runs: Vec<(LeaseId, Notes)>,
}
