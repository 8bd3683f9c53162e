//! The line before a named limit: how long a place in it is kept, and when a job comes that nobody calls.

use std::time::Duration;

use super::notation::Rate;

/// A job that was called has its permit reserved for so long.
pub const RESERVED: Duration = Duration::from_secs(5);

/// The share of the wait that one permit stands for, and what is added for the first in line.
const STEP: Duration = Duration::from_secs(5 * 60);

/// How long a job waits at most with so many before it, should nobody call it: five minutes, and five minutes more for
/// each time that all permits change hands before its turn, or what the slowest rate takes.
///
/// It stands behind the calls, for a store that has lost some; a job that comes by it may come in vain.
pub fn fallback(before: u64, max_concurrent: Option<u32>, rates: &[Rate]) -> Duration {
    // In whole milliseconds, which every store can count in.
    let share = |whole: Duration, parts: u32| {
        let ms = whole.as_millis().div_ceil(u128::from(parts.max(1)));
        Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
    };
    let by_cap = max_concurrent.map_or(Duration::ZERO, |most| share(STEP, most));
    let by_rate = rates.iter().map(|rate| share(rate.period, rate.starts)).max().unwrap_or_default();
    STEP + by_cap.max(by_rate).saturating_mul(u32::try_from(before).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fallback_grows_with_the_line_and_shrinks_with_the_permits() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(fallback(0, Some(5), &[]), minutes(5));
        assert_eq!(fallback(10, Some(5), &[]), minutes(15));
        assert_eq!(fallback(10, Some(1), &[]), minutes(55));
    }

    #[test]
    fn behind_a_rate_it_is_no_shorter_than_the_rate_takes() {
        let daily = Rate { starts: 2, period: Duration::from_secs(86_400), spread: false };
        assert!(fallback(10, None, &[daily]) >= Duration::from_secs(5 * 86_400));
        assert!(fallback(10, Some(100), &[daily]) >= Duration::from_secs(5 * 86_400));
    }
}
