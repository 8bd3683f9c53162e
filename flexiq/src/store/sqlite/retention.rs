//! How long ended jobs are kept, and how many: nothing in the store is unbounded by default.
//!
//! A success is kept as long as its worker said. Over the number of its state, what would go first by time goes
//! first: with one retention that is the oldest.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The dead are kept this long.
pub(super) const DEAD: Duration = DAY.saturating_mul(90);

/// Cancelled and expired jobs are kept this long: nobody waits for them to be repaired.
pub(super) const CANCELLED: Duration = DAY;

/// By state, from succeeded on: how many of one queue are kept.
pub(super) const KEPT: [i64; 4] = [100_000, 10_000, 10_000, 10_000];
