//! A cap is never exceeded.

use super::Violation;

/// Something holds room from one moment to another, half-open. Any unit will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From here on,
    pub from: i64,
    /// up to here.
    pub to: i64,
}

/// No moment lies in more than `cap` spans. Answers the most that were found.
///
/// # Errors
///
/// [`Violation::OverCap`].
pub fn cap(what: &str, cap: usize, spans: impl IntoIterator<Item = Span>) -> Result<usize, Violation> {
    let mut steps: Vec<(i64, i64)> = Vec::new();
    for Span { from, to } in spans.into_iter().filter(|span| span.from < span.to) {
        steps.extend([(from, 1), (to, -1)]);
    }
    // An end before a start at the same moment.
    steps.sort_unstable();
    let (mut running, mut peak) = (0_i64, 0);
    for (at, step) in steps {
        running += step;
        let found = usize::try_from(running).expect("no span ends before it begins");
        if found > cap {
            return Err(Violation::OverCap { what: what.into(), cap, found, at });
        }
        peak = peak.max(found);
    }
    Ok(peak)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(spans: &[(i64, i64)]) -> Vec<Span> {
        spans.iter().map(|&(from, to)| Span { from, to }).collect()
    }

    #[test]
    fn a_cap_of_two_with_two_is_kept() {
        assert_eq!(cap("t", 2, spans(&[(0, 10), (5, 20), (10, 30), (20, 25)])), Ok(2));
        assert_eq!(cap("t", 2, spans(&[])), Ok(0));
    }

    #[test]
    fn a_cap_of_two_with_three_is_found() {
        let found = cap("t", 2, spans(&[(0, 10), (5, 20), (9, 30)]));
        assert_eq!(found, Err(Violation::OverCap { what: "t".into(), cap: 2, found: 3, at: 9 }));
    }

    #[test]
    fn what_never_ends_counts_for_ever() {
        assert!(cap("t", 1, spans(&[(0, i64::MAX), (1_000_000, 1_000_001)])).is_err());
    }
}
