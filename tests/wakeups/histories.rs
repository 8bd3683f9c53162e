//! The histories, for each store.

use std::cell::Cell;
use std::time::Instant;

use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use crate::chances::{Beats, history};
use crate::play::{Tally, play};
use crate::stand::Stand;

/// Plays random histories on a store, a test for each line.
macro_rules! histories {
    ($($store:ident: $without_beats:expr, $with_beats:expr;)*) => {$(
        mod $store {
            use super::*;

            #[test]
            fn no_worker_sleeps_through_a_job_that_it_could_start() {
                let file = concat!("wakeups/regressions/", stringify!($store), ".txt");
                play_all(file, Stand::$store, Beats::Never, $without_beats);
            }

            #[test]
            fn no_worker_sleeps_through_a_job_where_others_beat() {
                let file = concat!("wakeups/regressions/", stringify!($store), "_with_beats.txt");
                play_all(file, Stand::$store, Beats::Sometimes, $with_beats);
            }
        }
    )*};
}

histories! {
    sqlite: 300, 100;
    sqlite_file: 60, 40;
}
#[cfg(feature = "redis")]
histories! {
    redis: 300, 100;
}

/// Plays so many histories. What fails is kept in the file, and played first from then on.
fn play_all<Opening: Future<Output = Stand>>(
    file: &'static str,
    stand: fn() -> Opening,
    beats: Beats,
    cases: u32,
) {
    let config = Config {
        cases: if std::env::var_os("FLEXIQ_SOAK").is_some() { 10_000 } else { cases },
        max_shrink_iters: 4_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        ..Config::default()
    };
    let cases = config.cases;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (tally, begun) = (Cell::new(Tally::default()), Instant::now());
    let played = TestRunner::new(config).run(&history(beats), |history| {
        let of_one = runtime.block_on(async { play(stand().await, &history).await })?;
        tally.set(tally.get() + of_one);
        Ok(())
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
    println!("{cases} histories in {:?}: {:?}", begun.elapsed(), tally.get());
}
