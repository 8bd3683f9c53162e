//! How durations, rates and back-offs are written: `"1h30m"`, `"100/m spread"`, `"1s..10m"`.
//!
//! Also compiled into the macro crate, which checks every literal with it; so it names nothing else of this crate.

use std::time::Duration;

/// At most `starts` starts in any window of `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Starts admitted.
    pub starts: u32,
    /// The length of the window.
    pub period: Duration,
    /// Whether starts are spaced evenly, instead of as they come.
    pub spread: bool,
}

/// How long a failed job waits for its next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Always this long.
    Fixed(Duration),
    /// `first`, doubled with each failure up to `largest`.
    Doubling {
        /// After the first failure.
        first: Duration,
        /// Never longer.
        largest: Duration,
    },
}
