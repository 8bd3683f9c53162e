//! The starts that a gate's rates count, and those that a store may have forgotten.
//!
//! A start is counted by a rate if any rate was in force when it happened. A store may forget it once it has left the longest
//! window that was in force since: a longer one that is set later may count it, or not.

use flexiq::internals::Rate;

/// What the rates of a gate say to one more start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It may start.
    Yes,
    /// It may not, whatever the store has forgotten.
    No { rate: Rate, found: usize, from: i64 },
    /// It depends on what the store has forgotten.
    Perhaps,
}

/// The starts of one gate, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Starts(Vec<Start>);

#[derive(Clone, Copy, Debug)]
struct Start {
    at: i64,
    /// It is not forgotten before.
    until: i64,
    is_kept: bool,
}

impl Starts {
    /// Counts one more start, while these rates are in force.
    pub(super) fn add(&mut self, at: i64, rates: &[Rate]) {
        let longest = longest(rates);
        if longest == 0 {
            return;
        }
        for start in self.0.iter_mut().filter(|start| start.at <= at - longest) {
            start.is_kept = false;
        }
        self.0.push(Start { at, until: at + longest, is_kept: true });
    }

    /// Lets time pass under these rates.
    pub(super) fn pass(&mut self, now: i64, rates: &[Rate]) {
        let longest = longest(rates);
        for start in &mut self.0 {
            start.is_kept &= now < start.until || start.at > now - longest;
            start.until = start.until.max(start.at + longest);
        }
    }

    /// What these rates say to one more start.
    pub(super) fn ask(&self, now: i64, rates: &[Rate]) -> Word {
        let mut word = Word::Yes;
        for rate in rates {
            let (kept, all) = (self.window(now, rate, true), self.window(now, rate, false));
            let most = rate.starts as usize;
            if kept.len() >= most {
                return Word::No { rate: *rate, found: kept.len() + 1, from: kept[kept.len() - most] };
            }
            if let Some(&last) = kept.last().filter(|_| rate.spread) {
                // A clock of milliseconds may be late by so much.
                if (now - last) * 1_000 + 999 < interval(rate) {
                    return Word::No { rate: *rate, found: 2, from: last };
                }
            }
            let is_spaced = |last: &i64| (now - last) * 1_000 >= interval(rate);
            if all.len() >= most || rate.spread && !all.last().is_none_or(is_spaced) {
                word = Word::Perhaps;
            }
        }
        word
    }

    /// The starts in the window that ends now: those that are surely counted, or all.
    fn window(&self, now: i64, rate: &Rate, kept: bool) -> Vec<i64> {
        let period = millis(rate);
        let is_in = |start: &&Start| start.at > now - period && (start.is_kept || !kept);
        self.0.iter().filter(is_in).map(|start| start.at).collect()
    }
}

fn millis(rate: &Rate) -> i64 {
    i64::try_from(rate.period.as_millis()).expect("a period of a test is short")
}

/// Microseconds between two starts of a spread rate.
fn interval(rate: &Rate) -> i64 {
    (millis(rate) * 1_000).div_euclid(i64::from(rate.starts))
        + i64::from((millis(rate) * 1_000).rem_euclid(i64::from(rate.starts)) > 0)
}

fn longest(rates: &[Rate]) -> i64 {
    rates.iter().map(millis).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(text: &str) -> Vec<Rate> {
        text.split(',').map(|rate| rate.parse().expect("a rate")).collect()
    }

    /// Starts at these moments under these rates.
    fn started(at: &[i64], text: &str) -> Starts {
        let mut starts = Starts::default();
        at.iter().for_each(|&at| starts.add(at, &rates(text)));
        starts
    }

    fn is_no(word: &Word) -> bool {
        matches!(word, Word::No { .. })
    }

    #[test]
    fn a_window_is_half_open_and_lies_anywhere() {
        let starts = started(&[900, 1_000], "2/s");
        assert!(is_no(&starts.ask(1_899, &rates("2/s"))), "across two whole seconds");
        assert_eq!(starts.ask(1_900, &rates("2/s")), Word::Yes);
        assert!(is_no(&starts.ask(1_900, &rates("9/s, 2/m"))), "each of several");
    }

    #[test]
    fn spread_starts_are_spaced() {
        let starts = started(&[0], "100/m spread");
        assert!(is_no(&starts.ask(598, &rates("100/m spread"))));
        assert_eq!(starts.ask(600, &rates("100/m spread")), Word::Yes);
    }

    #[test]
    fn what_has_left_the_window_in_force_may_be_forgotten() {
        let mut starts = started(&[0], "1/s");
        starts.pass(2_000, &rates("1/s"));
        assert_eq!(starts.ask(2_000, &rates("1/m")), Word::Perhaps);
        let mut starts = started(&[0], "1/m");
        starts.pass(2_000, &rates("1/s"));
        assert!(is_no(&starts.ask(3_000, &rates("1/m"))), "it was to be kept for a minute");
        starts.add(4_000, &rates("9/s"));
        assert_eq!(starts.ask(4_000, &rates("2/m")), Word::Perhaps, "a start under a shorter one forgets");
    }

    #[test]
    fn without_a_rate_nothing_is_counted() {
        let mut starts = Starts::default();
        starts.add(0, &[]);
        assert_eq!(starts.ask(0, &rates("1/m")), Word::Yes);
    }
}
