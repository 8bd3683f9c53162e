//! The histories, by what happens most in them, for each store.

use std::cell::Cell;
use std::time::Instant;

use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use crate::chances::{Theme, history};
use crate::play::{Tally, play};
use crate::stand::Stand;

/// A bit of everything, and nothing that mends what a bell has missed.
const ANY: Theme = Theme {
    enqueue: 6,
    delayed: 3,
    end: 5,
    hand: 1,
    limit: 2,
    time: 3,
    odd: 4,
    settle: 4,
    beat: 0,
    schedules: 0,
    cut: 0,
};

/// So many histories of each theme to soak: 10,000 for a store.
const SOAK: u32 = 2_500;

/// Plays random histories of each theme on a store, so many of each.
macro_rules! histories {
    ($($store:ident: $cases:expr;)*) => {$(
        mod $store {
            use super::*;

            of_theme! { $store, $cases, a_gate_that_opens_wakes_who_waits_behind_it:
                Theme { limit: 5, delayed: 1, odd: 2, ..ANY } }
            of_theme! { $store, $cases, a_moment_that_comes_wakes_who_waits_for_it:
                Theme { time: 6, delayed: 6, odd: 6, limit: 1, ..ANY } }
            of_theme! { $store, $cases, a_bell_is_not_lost_with_whoever_leaves_it: Theme { odd: 10, ..ANY } }
            of_theme! { $store, $cases, a_schedule_that_is_due_wakes_whoever_waits_in_its_queue:
                Theme { schedules: 8, time: 8, enqueue: 3, limit: 1, ..ANY } }
            of_theme! { $store, $cases, a_schedule_is_told_by_a_claim_or_by_a_beat:
                Theme { schedules: 8, time: 8, beat: 3, odd: 8, ..ANY } }
            of_theme! { $store, $cases, a_beat_between_the_others_loses_no_wake_up: Theme { beat: 1, ..ANY } }
        }
    )*};
}

macro_rules! of_theme {
    ($store:ident, $cases:expr, $test:ident: $theme:expr) => {
        #[test]
        fn $test() {
            let file = concat!("wakeups/regressions/", stringify!($store), "_", stringify!($test), ".txt");
            play_all(file, Stand::$store, $theme, $cases);
        }
    };
}

histories! {
    sqlite: 100;
    sqlite_file: 15;
}
#[cfg(feature = "redis")]
histories! {
    redis: 100;
}
#[cfg(feature = "redis")]
mod redis_cut {
    use super::*;

    of_theme! { redis_cut, 100, a_connection_that_breaks_loses_no_wake_up: Theme { cut: 2, ..ANY } }
}

/// Plays histories of a theme. What fails is kept in the file, and played first from then on.
fn play_all<Opening: Future<Output = Stand>>(
    file: &'static str,
    stand: fn() -> Opening,
    theme: Theme,
    cases: u32,
) {
    let cases = if std::env::var_os("FLEXIQ_SOAK").is_some() { SOAK } else { cases };
    let config = Config {
        cases,
        max_shrink_iters: 4_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (tally, begun) = (Cell::new(Tally::default()), Instant::now());
    let played = TestRunner::new(config).run(&history(theme), |history| {
        let of_one = runtime.block_on(async { play(stand().await, &history).await })?;
        tally.set(tally.get() + of_one);
        Ok(())
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
    let tally = tally.get();
    println!("{cases} histories in {:?}: {tally:?}", begun.elapsed());
    // A bell wakes one worker, and mostly one that can use it. Where a connection breaks, all of its sleepers look.
    assert!(tally.wakes < 100 || tally.vain * 3 < tally.wakes || theme.cut > 0, "a herd: {tally:?}");
}
