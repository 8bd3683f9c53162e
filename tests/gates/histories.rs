//! The histories, by what happens most in them, for each store.

use std::cell::Cell;

use flexiq_tests::ledger::check::{Judged, gates};
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};

use crate::chances::{Theme, history};
use crate::play::play;
use crate::stand::{Kind, Stand};

/// A bit of everything.
const ANY: Theme = Theme { enqueue: 6, turn: 10, set: 4, declare: 1, time: 5, crash: 1, hand: 1 };

/// So many histories of each theme to soak: 10,000 for a store.
const SOAK: u32 = 5_000;

/// Plays random histories of each theme, a test for each and for each kind of store.
macro_rules! histories {
    ($($test:ident: $theme:expr;)*) => {$(
        mod $test {
            use super::*;

            const REGRESSIONS: &str = concat!("gates/regressions/", stringify!($test), ".txt");

            #[test]
            fn sqlite() {
                play_all(REGRESSIONS, Kind::Sqlite, $theme, 60);
            }

            #[cfg(feature = "redis")]
            #[test]
            fn redis() {
                play_all(REGRESSIONS, Kind::Redis, $theme, 60);
            }
        }
    )*};
}

histories! {
    nothing_is_exceeded_and_nothing_is_left_idle_while_limits_change: ANY;
    nor_where_workers_are_lost_and_deploys_declare_something_else:
        Theme { declare: 3, crash: 4, time: 8, set: 2, ..ANY };
}

/// Plays histories of a theme and judges them. What fails is kept in the file, and played first from then on.
fn play_all(file: &'static str, kind: Kind, theme: Theme, cases: u32) {
    let cases = if std::env::var_os("FLEXIQ_SOAK").is_some() { SOAK } else { cases };
    let config = Config {
        cases,
        max_shrink_iters: 2_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let all = Cell::new(Judged::default());
    let played = TestRunner::new(config).run(&history(theme), |history| {
        let acts = runtime.block_on(async { play(Stand::open(kind).await, &history).await });
        let judged =
            gates(&acts).map_err(|violation| TestCaseError::fail(format!("{violation}\n{acts:#?}")))?;
        let so_far = all.get();
        all.set(Judged { starts: so_far.starts + judged.starts, kept: so_far.kept + judged.kept });
        Ok(())
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
    let Judged { starts, kept } = all.get();
    println!("{cases} histories: {starts} starts, {kept} claims with room that a gate kept from a job");
    // A history in which nothing starts, or no gate keeps anything, shows nothing.
    assert!(starts > cases as usize && kept > cases as usize, "{starts} starts, {kept} kept");
}
