//! Whether a text is a cron pattern: five fields, or six with seconds first.
//!
//! Only the check, compiled into the macro crate too: ticks are worked out in `cron.rs`. It takes the part of croner's
//! syntax that is written everywhere (numbers, names, `*`, lists, ranges, steps, and `L` for the last day), and the tests
//! hold it to croner.

/// What one field counts.
struct Field {
    what: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const fn field(what: &'static str, least: u32, most: u32, names: &'static [&'static str]) -> Field {
    Field { what, least, most, names }
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 6] = [
    field("second", 0, 59, &[]),
    field("minute", 0, 59, &[]),
    field("hour", 0, 23, &[]),
    field("day of the month", 1, 31, &[]),
    field("month", 1, 12, MONTHS),
    // 0 and 7 are both Sunday.
    field("day of the week", 0, 7, DAYS),
];

/// Checks a pattern; a refusal names the field and what it may hold.
pub fn check(pattern: &str) -> Result<(), String> {
    if pattern.starts_with('@') {
        return Err("write the five fields, such as `0 0 * * *` for every midnight".into());
    }
    let parts: Vec<&str> = pattern.split_whitespace().collect();
    let fields = match parts.len() {
        5 => &FIELDS[1..],
        6 => &FIELDS[..],
        count => {
            return Err(format!(
                "a cron has five fields (minute, hour, day, month, day of the week), or six with seconds first, \
                 and this has {count}; such as `*/5 * * * *`"
            ));
        }
    };
    for (field, part) in fields.iter().zip(&parts) {
        for item in part.split(',') {
            field.check(item).map_err(|reason| format!("in the {}, `{item}`: {reason}", field.what))?;
        }
    }
    if days_never_come(parts[parts.len() - 3], parts[parts.len() - 2], parts[parts.len() - 1]) {
        return Err("that day never comes in that month".into());
    }
    Ok(())
}

impl Field {
    /// One element of a list: `*`, `7`, `MON`, `1-5`, and any of them but a single number with `/2`.
    fn check(&self, item: &str) -> Result<(), String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let is_step = |step| number(step).is_some_and(|step| (1..=self.most).contains(&step));
        if step.is_some_and(|step| !is_step(step)) {
            return Err(format!("a step is a number from 1 to {}, such as `*/2`", self.most));
        }
        if range == "*" || (range == "L" && step.is_none() && self.what == "day of the month") {
            return Ok(());
        }
        match range.split_once('-') {
            Some((first, last)) => {
                if self.number(first)? > self.number(last)? {
                    return Err(format!(
                        "the first is above the last; write `{last}-{first}`, or two ranges"
                    ));
                }
                Ok(())
            }
            None if step.is_some() => Err(format!("a step needs a range; write `{range}-{}/…`", self.most)),
            None => self.number(range).map(|_| ()),
        }
    }

    /// The numbers that a list stands for once it was checked, a bit for each. The last day stands for any.
    fn members(&self, list: &str) -> u64 {
        list.split(',').fold(0, |members, item| {
            let (range, step) = item.split_once('/').unwrap_or((item, "1"));
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (self.number(first), self.number(last)),
                None => (self.number(range), self.number(range)),
            };
            let (first, last) = (first.unwrap_or(self.least), last.unwrap_or(self.most));
            let step = number(step).map_or(1, |step| step as usize);
            (first..=last).step_by(step).fold(members, |members, number| members | 1 << number)
        })
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        let name = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = name.and_then(|index| u32::try_from(index).ok()).map(|index| index + self.least);
        named.or_else(|| number(text)).filter(|number| (self.least..=self.most).contains(number)).ok_or_else(
            || {
                let names = match self.names {
                    [first, .., last] => format!(", or {first} to {last}"),
                    _ => String::new(),
                };
                format!("write a number from {} to {}{names}", self.least, self.most)
            },
        )
    }
}

/// A number of digits alone (`parse` would also take `+2`).
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Whether no month of the pattern has a day of it, such as the 30th of February.
///
/// A day of the week comes in every month, and where both are given a tick needs only one of them.
fn days_never_come(days: &str, months: &str, weekdays: &str) -> bool {
    let longest = |month: u32| match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let first_day = FIELDS[3].members(days).trailing_zeros();
    let months = FIELDS[4].members(months);
    weekdays == "*" && (1..=12).all(|month| months & 1 << month == 0 || first_day > longest(month))
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn patterns_are_taken_and_refused_by_field() {
        for good in [
            "* * * * *",
            "*/5 * * * *",
            "30 0,12 1-15/2 JAN-mar MON-FRI",
            "0 0 L * *",
            "0 0 29 2 *",
            "0 0 31 1,2 7",
            "0 0 31 2-3 *",
            "0 0 30-31 2 MON",
            "0 0 */31 2 *",
            "0 0 L 2 *",
            "15 */10 9-17 * * 0",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
            assert!(croner::Cron::from_str(good).is_ok(), "{good}");
        }
        for (bad, word) in [
            ("", "this has 0"),
            ("* * * *", "this has 4"),
            ("* * * * * * *", "this has 7"),
            ("@daily", "five fields"),
            ("60 * * * *", "in the minute, `60`: write a number from 0 to 59"),
            ("* 24 * * *", "in the hour"),
            ("* * 0 * *", "in the day of the month"),
            ("* * * 13 *", "from 1 to 12, or JAN to DEC"),
            ("* * * * FOO", "from 0 to 7, or SUN to SAT"),
            ("*/0 * * * *", "a step is a number from 1 to 59"),
            ("*/+2 * * * *", "a step"),
            ("5/2 * * * *", "write `5-59/…`"),
            ("5-1 * * * *", "write `1-5`"),
            ("1,,2 * * * *", "write a number"),
            ("+1 * * * *", "write a number"),
            ("0 0 30 2 *", "never comes"),
            ("0 0 31 4,JUN *", "never comes"),
            ("0 0 30-31 2 *", "never comes"),
            ("0 0 31 4-6/2 *", "never comes"),
            ("0 0 30-31/1,31 FEB *", "never comes"),
        ] {
            let refusal = check(bad).expect_err(bad);
            assert!(refusal.contains(word), "{bad}: {refusal}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_taken_is_taken_by_croner_too(pattern in "([0-9*L,/-]{1,5}|[A-Z]{3}|\\*|[0-9]{1,2}(-[0-9]{1,2})?)( (\\*|[0-9]{1,2}(-[0-9]{1,2})?(/[0-9])?|\\*/[0-9]{1,2}|L|MON|JAN)){4,5}") {
            if check(&pattern).is_ok() {
                proptest::prop_assert!(croner::Cron::from_str(&pattern).is_ok(), "{pattern}");
            }
        }
    }
}
