//! How durations, rates and back-offs are written: `"1h30m"`, `"100/m spread"`, `"1s..10m"`.
//!
//! The attribute, the builders and the environment all read them here. Also compiled into the macro crate, which
//! checks every literal with it; so it names nothing else of this crate. A refusal is a text that says what to write.

use std::fmt;
use std::str::FromStr;
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

/// Units from the largest, each with its milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A hundred years: longer is a slip of the pen, and would not fit every store's arithmetic.
const LONGEST_MS: u64 = 100 * 365 * 86_400_000;

const DURATION_HINT: &str = "write whole numbers with `d`, `h`, `m`, `s` or `ms`, such as `1h30m` or `500ms`";

/// Reads a duration: whole numbers with units, the larger unit first, each unit once.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    let mut units = UNITS.iter();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(DURATION_HINT.into());
    }
    while !rest.is_empty() {
        let digits = leading(rest, |c| c.is_ascii_digit());
        let after = &rest[digits.len()..];
        let unit = leading(after, |c| c.is_ascii_alphabetic());
        if digits.is_empty() || unit.is_empty() {
            return Err(DURATION_HINT.into());
        }
        if !UNITS.iter().any(|(name, _)| *name == unit) {
            return Err(format!("there is no unit `{unit}`; {DURATION_HINT}"));
        }
        let Some((_, ms)) = units.find(|(name, _)| *name == unit) else {
            return Err("put the larger unit first and each unit once, such as `1h30m`".into());
        };
        total = digits
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(*ms)?.checked_add(total))
            .filter(|total| *total <= LONGEST_MS)
            .ok_or("at most 100 years, `36500d`")?;
        rest = &after[unit.len()..];
    }
    Ok(Duration::from_millis(total))
}

/// Writes a duration as [`parse_duration`] reads it, to the millisecond.
pub fn write_duration(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0s".into();
    }
    let mut text = String::new();
    for (unit, ms) in UNITS {
        if rest >= ms {
            text.push_str(&format!("{}{unit}", rest / ms));
            rest %= ms;
        }
    }
    text
}

/// Reads one or more rates, with commas between them: `"10/s, 100000/d"`.
pub fn parse_rates(text: &str) -> Result<Vec<Rate>, String> {
    let rates = text.split(',').map(str::parse).collect::<Result<Vec<Rate>, String>>()?;
    for (index, rate) in rates.iter().enumerate() {
        if rates[..index].iter().any(|earlier| earlier.period == rate.period) {
            return Err("two rates have the same period; keep the smaller one".into());
        }
    }
    Ok(rates)
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HINT: &str = "write starts and a period, such as `100/m` or `100/m spread`";
        let (starts, rest) = text.trim().split_once('/').ok_or(HINT)?;
        let starts = starts.trim();
        if starts.is_empty() || !starts.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(HINT.into());
        }
        let starts: u32 = starts.parse().map_err(|_| format!("at most {} starts in a period", u32::MAX))?;
        if starts == 0 {
            return Err(
                "a rate of 0 would start nothing; write 1 or more, and pause a task to stop it".into()
            );
        }
        let mut words = rest.split_whitespace();
        let period = words.next().unwrap_or_default();
        let Some((_, ms)) = UNITS.iter().find(|(unit, _)| *unit == period && *unit != "ms") else {
            return Err(format!("the period is one of `s`, `m`, `h`, `d`, such as `{starts}/m`"));
        };
        let spread = match (words.next(), words.next()) {
            (None, _) => false,
            (Some("spread"), None) => true,
            _ => {
                return Err(format!(
                    "only `spread` may follow the period, such as `{starts}/{period} spread`"
                ));
            }
        };
        Ok(Self { starts, period: Duration::from_millis(*ms), spread })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = self.period.as_millis();
        match UNITS.iter().find(|(_, ms)| u128::from(*ms) == period) {
            Some((unit, _)) => write!(f, "{}/{unit}", self.starts)?,
            None => write!(f, "{}/{}", self.starts, write_duration(self.period))?,
        }
        f.write_str(if self.spread { " spread" } else { "" })
    }
}

impl FromStr for Backoff {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const HINT: &str = "write the first and the largest wait, such as `1s..10m`, or `fixed 5s`";
        let part = |text: &str| parse_duration(text).map_err(|reason| format!("`{}`: {reason}", text.trim()));
        let text = text.trim();
        if let Some(wait) = text.strip_prefix("fixed ") {
            return Ok(Self::Fixed(part(wait)?));
        }
        let (first, largest) = text.split_once("..").ok_or(HINT)?;
        if first.trim().is_empty() || largest.trim().is_empty() || largest.starts_with(['.', '=']) {
            return Err(HINT.into());
        }
        let (first, largest) = (part(first)?, part(largest)?);
        if first.is_zero() {
            return Err(
                "doubling begins above zero, such as `1s..10m`; to retry at once write `fixed 0s`".into()
            );
        }
        if first > largest {
            return Err(format!(
                "the first wait is longer than the largest; write `{}..{}`",
                write_duration(largest),
                write_duration(first)
            ));
        }
        Ok(Self::Doubling { first, largest })
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(wait) => write!(f, "fixed {}", write_duration(*wait)),
            Self::Doubling { first, largest } => {
                write!(f, "{}..{}", write_duration(*first), write_duration(*largest))
            }
        }
    }
}

/// The longest beginning of `text` whose characters all are `wanted`.
fn leading(text: &str, wanted: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !wanted(c)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn durations_are_read_with_the_larger_unit_first() {
        for (text, expected) in [
            ("10s", secs(10)),
            ("1h30m", secs(5_400)),
            ("500ms", Duration::from_millis(500)),
            ("1d2h3m4s5ms", secs(93_784) + Duration::from_millis(5)),
            (" 0s ", secs(0)),
            ("36500d", secs(36_500 * 86_400)),
        ] {
            assert_eq!(parse_duration(text), Ok(expected), "{text}");
        }
        for (text, word) in [
            ("", "such as"),
            ("10", "such as"),
            ("s", "such as"),
            ("1.5h", "such as"),
            ("-1s", "such as"),
            ("1h 30m", "such as"),
            ("10 s", "such as"),
            ("10x", "no unit `x`"),
            ("10S", "no unit `S`"),
            ("30m1h", "larger unit first"),
            ("1s1s", "each unit once"),
            ("36501d", "100 years"),
            ("99999999999999999999d", "100 years"),
        ] {
            let refusal = parse_duration(text).expect_err(text);
            assert!(refusal.contains(word), "{text}: {refusal}");
        }
    }

    #[test]
    fn rates_are_read_alone_and_in_lists() {
        let minute = Rate { starts: 100, period: secs(60), spread: false };
        assert_eq!("100/m".parse(), Ok(minute));
        assert_eq!(" 100 / m  spread ".parse(), Ok(Rate { spread: true, ..minute }));
        let day = Rate { starts: 100_000, period: secs(86_400), spread: false };
        let second = Rate { starts: 10, period: secs(1), spread: false };
        assert_eq!(parse_rates("10/s, 100000/d"), Ok(vec![second, day]));
        for (text, word) in [
            ("", "starts and a period"),
            ("100", "starts and a period"),
            ("/m", "starts and a period"),
            ("+5/m", "starts and a period"),
            ("100/x", "the period is one of"),
            ("100/ms", "the period is one of"),
            ("100/", "the period is one of"),
            ("100/2m", "the period is one of"),
            ("0/m", "a rate of 0"),
            ("4294967296/m", "at most 4294967295"),
            ("100/m burst", "only `spread`"),
            ("100/m spread spread", "only `spread`"),
            ("10/s,", "starts and a period"),
            ("10/s, 20/s", "same period"),
        ] {
            let refusal = parse_rates(text).expect_err(text);
            assert!(refusal.contains(word), "{text}: {refusal}");
        }
    }

    #[test]
    fn backoffs_are_read_doubling_and_fixed() {
        assert_eq!("1s..10m".parse(), Ok(Backoff::Doubling { first: secs(1), largest: secs(600) }));
        assert_eq!("5s .. 5s".parse(), Ok(Backoff::Doubling { first: secs(5), largest: secs(5) }));
        assert_eq!("fixed 5s".parse(), Ok(Backoff::Fixed(secs(5))));
        assert_eq!("fixed 0s".parse(), Ok(Backoff::Fixed(secs(0))));
        for (text, word) in [
            ("", "first and the largest"),
            ("5s", "first and the largest"),
            ("1s..", "first and the largest"),
            ("1s..=10m", "first and the largest"),
            ("10m..1s", "write `1s..10m`"),
            ("0s..1m", "fixed 0s"),
            ("1s..x", "`x`:"),
            ("fixed x", "`x`:"),
        ] {
            let refusal = text.parse::<Backoff>().expect_err(text);
            assert!(refusal.contains(word), "{text}: {refusal}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "\\PC{0,30}", near in "[0-9dhms./, fixed]{0,20}") {
            for text in [&text, &near] {
                let _ = (parse_duration(text), parse_rates(text), text.parse::<Backoff>());
            }
        }

        #[test]
        fn what_is_written_is_read_back(ms in 0..=LONGEST_MS, more in 0..1_000_000_u64, starts in 1..=u32::MAX, unit in 0..4_usize, spread: bool) {
            let duration = Duration::from_millis(ms);
            proptest::prop_assert_eq!(parse_duration(&write_duration(duration)), Ok(duration));
            let fixed = Backoff::Fixed(duration);
            proptest::prop_assert_eq!(fixed.to_string().parse(), Ok(fixed));
            let first = Duration::from_millis(1 + ms / 2);
            let doubling = Backoff::Doubling { first, largest: first + Duration::from_millis(more) };
            proptest::prop_assert_eq!(doubling.to_string().parse(), Ok(doubling));
            let rate = Rate { starts, period: Duration::from_millis(UNITS[unit].1), spread };
            proptest::prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
}
