//! Moments for people, seen from now.

use std::time::{Duration, SystemTime};

/// When a moment was or will be: `3m ago`, `in 2h`, `now`.
pub(super) fn seen_from(now: SystemTime, moment: SystemTime) -> String {
    match now.duration_since(moment) {
        Ok(past) if past < SECOND => "now".into(),
        Ok(past) => format!("{} ago", about(past)),
        Err(future) if future.duration() < SECOND => "now".into(),
        Err(future) => format!("in {}", about(future.duration())),
    }
}

/// Milliseconds since 1970, for programs.
pub(super) fn millis(moment: SystemTime) -> i64 {
    crate::clock::Timestamp::from(moment).as_millis()
}

const SECOND: Duration = Duration::from_secs(1);

/// A duration in its largest unit.
pub(super) fn about(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_its_largest_unit() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(10_000_000);
        for (seconds, past, future) in [
            (0, "now", "now"),
            (119, "119s ago", "in 119s"),
            (120, "2m ago", "in 2m"),
            (7_199, "119m ago", "in 119m"),
            (172_799, "47h ago", "in 47h"),
            (172_800, "2d ago", "in 2d"),
        ] {
            let span = Duration::from_secs(seconds);
            assert_eq!(
                (seen_from(now, now - span), seen_from(now, now + span)),
                (past.into(), future.into())
            );
        }
    }
}
