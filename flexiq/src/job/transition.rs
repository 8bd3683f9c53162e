//! What a store does with a job whose run has ended. Policy decides it, `finish` carries it out.

use std::time::Duration;

use super::{DeadReason, Due, ScheduledReason, Value};

/// What becomes of a job whose run has ended, and which counter moves with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Ends as succeeded; no counter moves.
    Succeed {
        /// What the run returned.
        value: Value,
        /// How long job and value are kept.
        keep: Duration,
    },
    /// Waits for its due time: a retry counts a failure, a deferral or a limit a deferral.
    Schedule {
        /// Why: every reason but [`ScheduledReason::Delay`]. A job that waits for a limit may be called earlier, and may
        /// have been so before its run has ended.
        reason: ScheduledReason,
        /// When it is due.
        due: Due,
        /// The failure's message.
        error: Option<String>,
    },
    /// Ends as dead: [`DeadReason::Deferrals`] counts a deferral, every other reason a failure.
    Kill {
        /// Why.
        reason: DeadReason,
        /// The failure's message.
        error: Option<String>,
    },
    /// Is ready again at its old place; counts a deferral.
    PutBack,
    /// Is ready again at its old place; no counter moves.
    Release,
    /// Ends as cancelled; no counter moves.
    Cancel,
}
