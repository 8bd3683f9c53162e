//! Keys that are free leave nothing behind, however many there were and whatever became of their jobs.

#[cfg(feature = "redis")]
use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore};
use flexiq::internals::{Clock, DeadReason, Finish, NewJob, Release, Transition};

use crate::harness::*;
use crate::unique::{AT_END, AT_START, only};

const RELEASES: [Release; 5] = [
    AT_END,
    AT_START,
    Release::AtEnd { at_least: secs(30) },
    Release::AtStart { at_least: secs(30) },
    Release::After(secs(30)),
];

/// Jobs with keys of every kind come, and end in every way: a few to a turn, lost, cancelled, expired, deleted.
async fn come_and_go(bench: &Bench) {
    for round in 0..20 {
        let key = |number: usize| format!("{}", (round * 7 + number) % 60);
        let calls = (0..40).map(|number| NewJob {
            expires: (number % 9 == 0).then_some(secs(5)),
            ..only(&key(number), RELEASES[number % RELEASES.len()])
        });
        let stored = bench.enqueue_many("q", calls.collect()).await;
        bench.store.cancel(stored[1].id).await.expect("answers");
        bench.store.delete(stored[1].id).await.expect("answers");
        let worker = bench.worker().await;
        let claimed = bench.claim(worker, &["send"], 20).await;
        let ends = claimed.iter().enumerate().filter(|(number, _)| number % 5 > 0);
        let ends = ends.map(|(number, claimed)| {
            let end = match number % 3 {
                0 => succeed(),
                1 => Transition::Kill { reason: DeadReason::Never, error: None },
                _ => Transition::Release,
            };
            Finish::new(claimed.lease, end)
        });
        bench.turn(worker, ends.collect(), None).await;
        bench.pass(secs(6)).await;
    }
    bench.pass(LEASE).await;
    loop {
        let claimed = bench.claim(bench.living, &["send"], 100).await;
        if claimed.is_empty() {
            break;
        }
        bench.turn(bench.living, finish_all(&claimed), None).await;
    }
}

/// A thousand keys, each for a second, a hundred a second, and no beat.
async fn flood(bench: &Bench) {
    for number in 0..1_000 {
        bench.enqueue(only(&number.to_string(), Release::After(secs(1)))).await;
        bench.hands.advance(millis(10));
    }
}

/// Until all retention is over.
async fn forget(bench: &Bench) {
    bench.hands.advance(secs(91 * 86_400));
    bench.pass(secs(60)).await;
}

#[tokio::test]
async fn sqlite_forgets_keys_that_are_free() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let (clock, hands) = Clock::manual(START);
    let mut options = SqliteOptions::new(Location::File(path.clone()));
    options.clock = clock;
    let bench =
        Bench::of(SqliteStore::open(options).await.expect("the store opens"), hands, millis(0), None).await;
    let database = rusqlite::Connection::open(path).expect("the file is there");
    let rows = || -> i64 {
        database.query_row("SELECT count(*) FROM flexiq_unique", [], |row| row.get(0)).expect("it is read")
    };
    come_and_go(&bench).await;
    assert!(rows() > 0, "time holds some");
    bench.pass(secs(30)).await;
    assert_eq!(rows(), 0);
    flood(&bench).await;
    assert!(rows() < 110, "{} rows", rows());
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn redis_forgets_keys_that_are_free_and_what_it_knew_of_their_jobs() {
    let url = flexiq_tests::redis_server::url();
    let (address, prefix) = url.split_once("?prefix=").expect("a store of a test has a prefix");
    let (clock, hands) = Clock::manual(START);
    let mut options = RedisOptions::from_url(&url).expect("the URL is one of Redis");
    options.clock = clock;
    let bench =
        Bench::of(RedisStore::open(options).await.expect("the store opens"), hands, millis(4), None).await;
    let client = redis::Client::open(address).expect("the URL is one of Redis");
    let mut server = client.get_connection().expect("the server answers");
    let mut size = |command: &str, key: &str| -> usize {
        let key = format!("{{{prefix}:q}}:{key}");
        redis::cmd(command).arg(key).query(&mut server).expect("the server answers")
    };
    come_and_go(&bench).await;
    assert!(size("HLEN", "unique") > 0, "time holds some");
    assert_eq!(size("HLEN", "unique"), size("ZCARD", "unique_over"));
    bench.pass(secs(30)).await;
    assert_eq!((size("HLEN", "unique"), size("ZCARD", "unique_over")), (0, 0));
    forget(&bench).await;
    assert_eq!((size("HLEN", "bodies"), size("HLEN", "keyed")), (0, 0));
    bench.enqueue_many("q", jobs("send", 10)).await;
    assert_eq!(size("HLEN", "keyed"), 0, "jobs without a key are not known here");
    flood(&bench).await;
    assert!(size("HLEN", "unique") < 110, "{} keys", size("HLEN", "unique"));
}
