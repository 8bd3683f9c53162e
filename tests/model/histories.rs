//! The histories, by what happens most in them.

use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use crate::chances::{Theme, history};
use crate::play::play;
use crate::sides::Kind;

/// Steps of a history at most.
const MOST_STEPS: usize = 60;

/// All kinds alike, without limits.
const ANY: Theme = Theme {
    enqueue: 5,
    turn: 8,
    odd_turn: 2,
    beat: 3,
    workers: 1,
    hand: 3,
    limit: 0,
    named: 0,
    unique: 10,
    schedules: 0,
    time: 4,
    clock: 0,
};

/// With limits: declared, set and cleared.
const LIMITS: Theme = Theme { odd_turn: 1, workers: 2, hand: 1, limit: 4, ..ANY };

/// With named limits that runs ask for.
const NAMED: Theme = Theme { beat: 4, odd_turn: 1, hand: 1, named: 10, ..ANY };

/// With unique keys, which much is done to by hand.
const UNIQUE: Theme = Theme { enqueue: 8, hand: 5, unique: 80, ..ANY };
/// With schedules that are declared and set, and tick.
const SCHEDULES: Theme = Theme { odd_turn: 1, workers: 3, hand: 1, limit: 1, schedules: 10, time: 6, ..ANY };

/// Plays random histories of each theme, a test for each and for each kind of store, which run side by side.
macro_rules! histories {
    ($($test:ident: $theme:expr;)*) => {
        const THEMES: u32 = [$(stringify!($test)),*].len() as u32;

        $(
            mod $test {
                use super::*;

                const REGRESSIONS: &str = concat!("model/regressions/", stringify!($test), ".txt");

                #[test]
                fn sqlite() {
                    play_all(REGRESSIONS, $theme, Kind::Sqlite, cases(384, 20_000));
                }

                #[cfg(feature = "redis")]
                #[test]
                fn redis() {
                    play_all(REGRESSIONS, $theme, Kind::Redis, cases(128, 20_000));
                }
            }
        )*
    };
}

/// The share of one theme in so many histories: some by default, more with `FLEXIQ_SOAK=1`.
fn cases(by_default: u32, to_soak: u32) -> u32 {
    let all = if std::env::var_os("FLEXIQ_SOAK").is_some() { to_soak } else { by_default };
    all / THEMES
}

histories! {
    any_history_is_the_models: ANY;
    a_history_of_lost_workers_is_the_models: Theme { beat: 6, workers: 4, time: 8, hand: 1, ..ANY };
    a_history_of_moving_clocks_is_the_models: Theme { beat: 5, time: 5, clock: 3, ..ANY };
    a_history_of_hands_and_repeated_turns_is_the_models: Theme { odd_turn: 5, hand: 8, ..ANY };
    a_history_of_limits_is_the_models: LIMITS;
    a_history_of_limits_and_moving_clocks_is_the_models: Theme { beat: 4, clock: 2, ..LIMITS };
    a_history_of_named_limits_is_the_models: NAMED;
    a_history_of_schedules_is_the_models: SCHEDULES;
    a_history_of_schedules_and_moving_clocks_is_the_models: Theme { clock: 2, beat: 5, ..SCHEDULES };
    a_history_of_named_limits_and_moving_clocks_is_the_models: Theme { clock: 2, time: 6, ..NAMED };
    a_history_of_unique_jobs_is_the_models: UNIQUE;
    a_history_of_unique_jobs_limits_and_moving_clocks_is_the_models: Theme { limit: 2, clock: 2, ..UNIQUE };
}

/// Plays histories of a theme. What fails is kept in the file, and played first from then on.
fn play_all(file: &'static str, theme: Theme, kind: Kind, cases: u32) {
    let config = Config {
        cases,
        max_shrink_iters: 2_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let played = TestRunner::new(config)
        .run(&history(theme, MOST_STEPS), |history| runtime.block_on(play(&history, kind)));
    if let Err(failure) = played {
        panic!("{failure}");
    }
}
