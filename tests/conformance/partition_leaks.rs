//! A partition that has gone leaves nothing behind, however it was used: its name is looked for in all that a store holds.

use flexiq::DeadReason;
#[cfg(feature = "redis")]
use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore};
use flexiq::internals::{
    Change, Claimed, Clock, Due, Finish, Held, Hold, Limits, NewJob, ScheduledReason, Transition,
};

use crate::harness::*;

/// What all partitions of these tests are called, and nothing else.
pub(crate) const MARK: &str = "vanishing";

/// Partitions come, are limited, held, retried, cancelled and emptied, and go.
async fn come_and_go(bench: &Bench) {
    let limits = Limits { max_concurrent: Some(2), ..rate("3/m spread") };
    let worker = bench.partitioning("export", Limits::default(), limits).await;
    let names: Vec<String> = (0..8).map(|number| format!("{MARK}-{number}")).collect();
    for partition in &names {
        bench.set_partition("export", partition, Change::MaxPending(Some(100))).await;
        let mut jobs = jobs_of("export", partition, 4);
        jobs.push(NewJob { due: Due::In(secs(50)), ..job_of("export", partition) });
        jobs.push(NewJob { expires: Some(secs(70)), ..job_of("export", partition) });
        bench.enqueue_many("q", jobs).await;
    }
    let mut runs = 0;
    for round in 0..30 {
        let claimed = bench.claim(worker, &["export"], 100).await;
        let finishes = claimed.iter().map(|claimed| {
            runs += 1;
            if round < 10 { end(claimed, runs) } else { Finish::new(claimed.lease, succeed()) }
        });
        let finishes = finishes.collect();
        bench.turn(worker, finishes, None).await;
        if round == 5 {
            bench.set_partition("export", &names[0], Change::Paused(true)).await;
            bench.set_partition("export", &names[1], Change::MaxConcurrent(Some(1))).await;
            bench.store.cancel_partition(name("export"), names[2].clone()).await.expect("answers");
        }
        bench.pass(secs(20)).await;
    }
    for partition in &names {
        for change in [Change::MaxConcurrent(None), Change::MaxPending(None), Change::Paused(false)] {
            bench.set_partition("export", partition, change).await;
        }
    }
    for _ in 0..10 {
        let claimed = bench.claim(worker, &["export"], 100).await;
        bench.turn(worker, finish_all(&claimed), None).await;
        bench.pass(secs(20)).await;
    }
    let counts = bench.counts("export").await;
    assert_eq!((counts.ready, counts.scheduled, counts.running), (0, 0, 0));
    assert!(runs > 40, "only {runs} runs");
}

/// All ways in which a run ends, one after the other.
fn end(claimed: &Claimed, run: usize) -> Finish {
    let retry = Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(secs(5)), error: None };
    let transition = match run % 6 {
        0 => succeed(),
        1 => retry,
        2 => Transition::Release,
        3 => Transition::Kill { reason: DeadReason::Never, error: None },
        4 => Transition::Cancel,
        _ => Transition::PutBack,
    };
    let hold = (run % 6 == 5).then_some(Hold { what: Held::Partition, length: secs(30) });
    Finish { hold, ..Finish::new(claimed.lease, transition) }
}

/// Until all retention is over.
async fn forget(bench: &Bench) {
    bench.hands.advance(secs(91 * 86_400));
    bench.pass(secs(60)).await;
}

#[tokio::test]
async fn sqlite_forgets_a_partition_that_has_gone() {
    let folder = Folder::new();
    let path = folder.file("jobs.db");
    let (clock, hands) = Clock::manual(START);
    let mut options = SqliteOptions::new(Location::File(path.clone()));
    options.clock = clock;
    let bench =
        Bench::of(SqliteStore::open(options).await.expect("the store opens"), hands, millis(0), None).await;
    come_and_go(&bench).await;
    let database = rusqlite::Connection::open(path).expect("the file is there");
    assert!(!rows_of_marked(&database).is_empty(), "what has ended is still there");
    forget(&bench).await;
    assert_eq!(rows_of_marked(&database), Vec::<String>::new());
}

/// The rows, by table, in which the mark is found.
fn rows_of_marked(database: &rusqlite::Connection) -> Vec<String> {
    let mut tables =
        database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").expect("it is SQL");
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).expect("it is read").collect::<Result<_, _>>().expect("names");
    let mut marked = Vec::new();
    for table in tables {
        let mut statement = database.prepare(&format!("SELECT * FROM {table}")).expect("it is SQL");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("it is read");
        while let Some(row) = rows.next().expect("a row") {
            let is_marked =
                |column| holds_mark(row.get_ref(column).expect("a value").as_bytes().unwrap_or_default());
            if (0..columns).any(is_marked) {
                marked.push(table.clone());
            }
        }
    }
    marked
}

fn holds_mark(bytes: &[u8]) -> bool {
    bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes())
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn redis_forgets_a_partition_that_has_gone() {
    let url = flexiq_tests::redis_server::url();
    let (address, prefix) = url.split_once("?prefix=").expect("a store of a test has a prefix");
    let (clock, hands) = Clock::manual(START);
    let mut options = RedisOptions::from_url(&url).expect("the URL is one of Redis");
    options.clock = clock;
    let bench =
        Bench::of(RedisStore::open(options).await.expect("the store opens"), hands, millis(4), None).await;
    come_and_go(&bench).await;
    let mut server =
        redis::Client::open(address).and_then(|client| client.get_connection()).expect("the server answers");
    assert!(!keys_of_marked(&mut server, prefix).is_empty(), "what has ended is still there");
    forget(&bench).await;
    assert_eq!(keys_of_marked(&mut server, prefix), Vec::<String>::new());
}

/// The keys, once for each field, value or member in which the mark is found.
#[cfg(feature = "redis")]
pub(crate) fn keys_of_marked(server: &mut redis::Connection, prefix: &str) -> Vec<String> {
    let mut keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("*{prefix}*")).query(server).expect("the server answers");
    keys.sort();
    let mut marked = Vec::new();
    for key in keys {
        let kind: String = redis::cmd("TYPE").arg(&key).query(server).expect("the server answers");
        let mut command = match kind.as_str() {
            "hash" => redis::cmd("HGETALL"),
            "set" => redis::cmd("SMEMBERS"),
            _ => redis::cmd("ZRANGE"),
        };
        command.arg(&key);
        if kind == "zset" {
            command.arg(0).arg(-1);
        }
        let parts: Vec<Vec<u8>> = command.query(server).expect("the server answers");
        marked.extend(parts.iter().filter(|part| holds_mark(part)).map(|_| key.clone()));
    }
    marked
}
