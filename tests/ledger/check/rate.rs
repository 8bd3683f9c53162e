//! A rate is never exceeded.

use super::Violation;

/// No half-open window of the period has more than `most` starts, wherever it begins. Answers the most that were found.
///
/// # Errors
///
/// [`Violation::OverRate`].
pub fn rate(
    what: &str,
    most: usize,
    period_ms: i64,
    starts: impl IntoIterator<Item = i64>,
) -> Result<usize, Violation> {
    let mut starts: Vec<i64> = starts.into_iter().collect();
    starts.sort_unstable();
    let (mut end, mut peak) = (0, 0);
    // A fullest window may be moved until it begins with a start.
    for (begin, &from) in starts.iter().enumerate() {
        while end < starts.len() && starts[end] - from < period_ms {
            end += 1;
        }
        let found = end - begin;
        if found > most {
            return Err(Violation::OverRate { what: what.into(), most, period_ms, found, from });
        }
        peak = peak.max(found);
    }
    Ok(peak)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_in_each_window_are_within_the_rate() {
        // One each 10 ms: a window of a second has a hundred wherever it begins.
        assert_eq!(rate("t", 100, 1_000, (0..500).map(|n| n * 10)), Ok(100));
        // All at once, and all again when the window has passed.
        let bursts = (0..100).map(|_| 0).chain((0..100).map(|_| 1_000));
        assert_eq!(rate("t", 100, 1_000, bursts), Ok(100));
    }

    #[test]
    fn a_hundred_and_one_in_one_window_are_found() {
        // Within the rate by every whole second, and not in the window across two of them.
        let starts = (0..50).map(|_| 900).chain((0..51).map(|_| 1_899));
        let found = rate("t", 100, 1_000, starts);
        let violation =
            Violation::OverRate { what: "t".into(), most: 100, period_ms: 1_000, found: 101, from: 900 };
        assert_eq!(found, Err(violation));
    }
}
