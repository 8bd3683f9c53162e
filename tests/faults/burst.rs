//! A burst is spread over the processes that sleep. On SQLite processes do not know of each other's sleep.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use flexiq::Queue;
use flexiq_tests::ledger::History;
use serde_json::json;

use super::suite::place::Place;
use super::suite::process::Process;

const WORKERS: usize = 10;
const JOBS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_burst_reaches_every_process_that_sleeps() {
    let place = Place::new();
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let ledger = |number: usize| place.ledger().join(format!("worker-{number}"));
    let _workers: Vec<Process> =
        (0..WORKERS).map(|number| Process::crew("idle", &place.url(), &ledger(number), &[])).collect();
    // The task is not linked here: it is known when a worker has declared it.
    let begun = Instant::now();
    let call = |millis: u64| queue.enqueue_by_name("loose", json!({"millis": millis}));
    while call(0).blocking().is_err() {
        assert!(begun.elapsed() < PATIENCE, "the workers declare their task");
        sleep(Duration::from_millis(5));
    }
    while asleep(&place.url()) < WORKERS {
        assert!(begun.elapsed() < PATIENCE, "the workers find nothing and sleep");
        sleep(Duration::from_millis(5));
    }

    // Longer than the test looks: a slow machine must not let the first finish and come back for more.
    queue.enqueue_many((0..JOBS).map(|_| call(60_000))).blocking().expect("stored");
    let shares = loop {
        let history = History::read(&place.ledger()).expect("the ledgers can be read");
        let mut shares: BTreeMap<String, usize> =
            (0..WORKERS).map(|number| (format!("worker-{number}"), 0)).collect();
        for body in &history.bodies {
            *shares.get_mut(&body.process).expect("it is one of them") += 1;
        }
        if history.bodies.len() > JOBS {
            break shares;
        }
        assert!(begun.elapsed() < PATIENCE * 2, "all run: {shares:?}");
        sleep(Duration::from_millis(10));
    };
    let (least, most) = (shares.values().min().expect("ten"), shares.values().max().expect("ten"));
    println!("burst: {JOBS} jobs on {WORKERS} processes, {least} to {most} each");
    // A tenth would be fair: who comes back to wait counts again, so that the last get less.
    assert!(shares.values().all(|&share| share >= 5), "{shares:?}");
}

/// How many workers stand in the line of those who sleep.
fn asleep(url: &str) -> usize {
    let (address, prefix) = url.split_once("?prefix=").expect("a store of a test has a prefix");
    let client = redis::Client::open(address).expect("the URL is one of Redis");
    let mut server = client.get_connection().expect("the server answers");
    let line: Vec<Vec<u8>> = redis::cmd("ZRANGE")
        .arg(format!("{{{prefix}:burst}}:waiters"))
        .arg(0)
        .arg(-1)
        .query(&mut server)
        .expect("it is a sorted set");
    // As `lua/lib/bells.lua` says: number, handle, worker. One that is about to leave may stand there twice.
    line.iter().map(|waiter| &waiter[22..38]).collect::<BTreeSet<_>>().len()
}
