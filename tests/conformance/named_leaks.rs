//! A named limit that nobody uses any more leaves nothing behind: the tables of limits are empty, or its name is not found
//! in any key.

#[cfg(feature = "redis")]
use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore};
use flexiq::internals::{Ask, Asked, Clock, Due, LeaseId, NewJob, PermitId, ScheduledReason, Transition};

use crate::harness::*;
use crate::partition_leaks::MARK;
#[cfg(feature = "redis")]
use crate::partition_leaks::keys_of_marked;
use crate::permits::*;

/// After so long everything has left its window, and every call its time.
const FORGOTTEN: std::time::Duration = secs(2 * 3_600);

/// Asks in turn for what has a number, a rate, or both, of several keys.
fn ask(number: usize, lease: LeaseId) -> Ask {
    let key = format!("{MARK}-{}", number / 3 % 2);
    let permit = PermitId { limit: name(MARK), key, lease };
    let ask = match number % 3 {
        0 => one_of(2, lease),
        1 => at_rate("30/m spread, 900/h", lease),
        _ => Ask { rates: rates("20/m"), ..one_of(1, lease) },
    };
    Ask { permit, ..ask }
}

/// Runs are granted permits, stand in line, are called, die, are cancelled and expire, and limits are held.
async fn come_and_go(bench: &Bench) {
    let mut granted = 0;
    for round in 0..40_usize {
        let mut fresh = jobs("call", 3);
        fresh.push(NewJob { expires: Some(secs(30)), ..job("call") });
        let stored = bench.enqueue_many("q", fresh).await;
        let mut asked = Vec::new();
        for (number, run) in bench.come(100).await.into_iter().enumerate() {
            let ask = ask(round + number, run);
            asked.push((run, bench.acquire(&ask).await, (round + number) % 7, ask));
        }
        // Some are called before they end.
        for (run, answer, how, ask) in asked {
            match (answer, how) {
                // Its worker dies.
                (_, 0) => {}
                (Asked::Granted, 1) => {
                    granted += 1;
                    bench.end_in_line(run, START).await;
                    bench.give_back_and_hold(&ask, 20).await;
                }
                (Asked::Granted, _) => {
                    granted += 1;
                    bench.succeeds(&ask).await;
                }
                (Asked::Refused { due }, 2 | 3) => drop(bench.end_in_line(run, due).await),
                (Asked::Refused { .. }, 4) => {
                    let retry = Due::In(secs(5));
                    let retry =
                        Transition::Schedule { reason: ScheduledReason::Retry, due: retry, error: None };
                    bench.finish(bench.living, run, retry).await;
                }
                (Asked::Refused { .. }, _) => drop(bench.finish(bench.living, run, succeed()).await),
            }
        }
        bench.store.cancel(stored[0].id).await.expect("answers");
        bench.pass(secs(4)).await;
    }
    assert!(granted > 10, "only {granted} were granted");
    loop {
        bench.pass(secs(600)).await;
        let came = bench.come(1_000).await;
        if came.is_empty() {
            break;
        }
        for run in came {
            bench.finish(bench.living, run, succeed()).await;
        }
    }
}

/// How many rows there are of what is kept of named limits, by table; nothing of a table that is empty.
fn rows(database: &rusqlite::Connection) -> Vec<(&'static str, i64)> {
    ["flexiq_permits", "flexiq_line", "flexiq_named", "flexiq_calls", "flexiq_starts", "flexiq_paces"]
        .map(|table| {
            let count = format!("SELECT count(*) FROM {table}");
            (table, database.query_row(&count, [], |row| row.get(0)).expect("it is counted"))
        })
        .into_iter()
        .filter(|(_, rows)| *rows > 0)
        .collect()
}

#[tokio::test]
async fn sqlite_forgets_a_named_limit_that_nobody_uses() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let (clock, hands) = Clock::manual(START);
    let mut options = SqliteOptions::new(Location::File(path.clone()));
    options.clock = clock;
    let bench =
        Bench::of(SqliteStore::open(options).await.expect("the store opens"), hands, millis(0), None).await;
    come_and_go(&bench).await;
    let database = rusqlite::Connection::open(path).expect("the file is there");
    bench.pass(FORGOTTEN).await;
    assert_eq!(rows(&database), []);
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn redis_forgets_a_named_limit_that_nobody_uses() {
    let url = flexiq_tests::redis_server::url();
    let (address, prefix) = url.split_once("?prefix=").expect("a store of a test has a prefix");
    let (clock, hands) = Clock::manual(START);
    let mut options = RedisOptions::from_url(&url).expect("the URL is one of Redis");
    options.clock = clock;
    let bench =
        Bench::of(RedisStore::open(options).await.expect("the store opens"), hands, millis(4), None).await;
    come_and_go(&bench).await;
    bench.pass(FORGOTTEN).await;
    let mut server =
        redis::Client::open(address).and_then(|client| client.get_connection()).expect("the server answers");
    assert_eq!(keys_of_marked(&mut server, prefix), Vec::<String>::new());
    let named: Vec<String> =
        redis::cmd("KEYS").arg(format!("*{prefix}*{MARK}*")).query(&mut server).expect("the server answers");
    assert_eq!(named, Vec::<String>::new());
}
