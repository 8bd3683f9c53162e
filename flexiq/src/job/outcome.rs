//! How a run ended, in the words of the one who ran it. What follows from it is policy.

use std::time::Duration;

use crate::clock::Timestamp;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The function returned `()` or `Ok`.
    Succeeded(Value),
    /// The function returned an error.
    Failed {
        /// What happened, in words.
        error: String,
        /// What the task wants next.
        after: After,
    },
    /// The function panicked.
    Panicked {
        /// What it said.
        error: String,
    },
    /// The run took longer than this.
    TimedOut(Duration),
    /// The task asked for later.
    Deferred(Due),
    /// The task found that nothing of its kind should start for a while: its job goes back to its old place.
    Held(Hold),
    /// A named limit was full or spent: the job stands in its line, and comes at this time unless it is called.
    Limited(Due),
    /// The payload does not fit the parameters: no later run could do better.
    Undecodable {
        /// The parameter, and what did not fit.
        error: String,
    },
    /// The worker took the run back: it shuts down, or cannot be sure of its lease.
    Released,
    /// The run was dropped because its job was cancelled.
    Cancelled,
}

/// Nothing of a scope starts for a while: what a run learned from the outside, such as "429, wait 30 s".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What is held.
    pub what: Held,
    /// For how long, from the store's now. A hold never ends an earlier one sooner.
    pub length: Duration,
}

/// What a run may hold, in the queue that its job stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    /// Its whole queue.
    Queue,
    /// All jobs of its task.
    Task,
    /// All jobs of its partition; of its task, where it has none.
    Partition,
}

/// What a failed task wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// A retry after the back-off of its policy.
    Backoff,
    /// A retry after this long.
    Delay(Duration),
    /// No retry.
    Never,
}

/// A moment, or a distance from the store's now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This long after the store's now.
    In(Duration),
    /// At this moment of the store's clock.
    At(Timestamp),
}

impl Due {
    /// At once.
    pub const NOW: Self = Self::In(Duration::ZERO);

    /// The moment that is meant, when the store's clock shows `now`.
    pub fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::In(duration) => now + duration,
            Self::At(moment) => moment,
        }
    }
}

/// What a succeeded run returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The function returns `()`.
    Unit,
    /// The encoded value.
    Json(Vec<u8>),
    /// The value has more bytes than are kept.
    TooLarge {
        /// Its bytes.
        size: usize,
        /// The bytes allowed.
        limit: usize,
    },
}
