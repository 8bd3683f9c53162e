//! Samples of what waits: two of them, of different times, so that what grows can be told from what is only large.
//!
//! To a store each is a text with its moment. Who writes it and what is in it is `queue/sample.rs`'s.

use crate::clock::Timestamp;

/// A store keeps so many samples: the newest, and the one before.
pub const SAMPLES_KEPT: usize = 2;

/// A sample as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSample {
    /// The store's moment at which it was kept.
    pub at: Timestamp,
    /// What waited then.
    pub text: String,
}
