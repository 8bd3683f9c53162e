//! A server that is there, and is disturbed: scripts flushed, connections killed, stopped, full, a replica for a while.

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use flexiq::{Error, State};

use crate::stage::{Made, Stage, enqueue_brief, enqueue_narrow, pass, until};

/// Does something to a busy fleet's server again and again for some seconds; nobody may notice.
async fn unnoticed(command: &str, every: Duration) {
    let stage = Stage::new().await;
    let load = stage.load();
    stage.goes_on().await;
    let (begun, mut times) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(5) {
        stage.server.tell(command);
        times += 1;
        tokio::time::sleep(every).await;
    }
    let made = load.stop().await;
    println!("{times} times {command}: {} jobs stored, {} errors", made.stored.len(), made.errors.len());
    assert!(made.errors.is_empty(), "{:?}", made.errors);
    assert!(made.stored.len() > 50, "{} jobs were stored", made.stored.len());
    stage.accounts_for(&made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_are_flushed_every_50_ms_are_not_missed() {
    unnoticed("SCRIPT FLUSH", Duration::from_millis(50)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_killed_every_100_ms_are_made_anew() {
    unnoticed("CLIENT KILL TYPE pubsub", Duration::from_millis(100)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_stopped_for_longer_than_a_lease_takes_no_job_from_the_living() {
    let stage = Stage::new().await;
    // They outlast the stop: nobody may start them a second time.
    let mut made = Made::default();
    for _ in 0..6 {
        made.stored.push(enqueue_brief(&stage.queue, 8_000).await.expect("stored").id());
    }
    let capped = enqueue_narrow(&stage.queue, 8_000).await.expect("stored");
    made.stored.push(capped.id());
    until("all run", async || {
        stage.queue.counts().await.expect("it answers").iter().map(|counts| counts.running).sum::<u64>() == 7
    })
    .await;
    let load = stage.load();
    stage.goes_on().await;

    signal(stage.server.pid(), "STOP");
    pass(5_000).await;
    signal(stage.server.pid(), "CONT");
    let after = stage.goes_on().await;
    pass(2_500).await;
    for id in &made.stored[..6] {
        let job = stage.queue.status(*id).await.expect("it is there");
        assert_eq!((job.state, job.runs, job.losses), (State::Running, 1, 0), "its run goes on");
    }
    let loaded = load.stop().await;
    println!("stopped for 5 s: a job ran {after:?} after; the producer met {} errors", loaded.errors.len());
    assert!(after < Duration::from_secs(5), "it goes on after {after:?}");
    made.stored.extend(loaded.stored);
    stage.accounts_for(&made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_full_refuses_jobs_and_lets_those_it_has_be_worked_off() {
    let stage = Stage::new().await;
    let load = stage.load();
    stage.goes_on().await;
    stage.server.tell("CONFIG SET maxmemory 1mb");
    let begun = Instant::now();
    let error = enqueue_brief(&stage.queue, 0).await.expect_err("it is full");
    assert!(matches!(error, Error::StoreRefused { .. }) && error.to_string().contains("raise maxmemory"));
    let mut made = load.stop().await;
    until("what it has is worked off", async || {
        let counts = stage.queue.counts().await.expect("it answers");
        counts.iter().all(|counts| counts.pending() + counts.running == 0)
    })
    .await;
    let before = refusals(&stage, "OOM");
    pass(3_000).await;
    let refused = refusals(&stage, "OOM") - before;
    println!("full: worked off after {:?}, then {refused} refusals of two workers in 3 s", begun.elapsed());
    stage.server.tell("CONFIG SET maxmemory 0");
    assert!(made.errors.iter().all(|error| matches!(error, Error::StoreRefused { .. })), "{:?}", made.errors);
    assert!(refused <= 2 * 20 * 3, "{refused} refusals in 3 s");
    let load = stage.load();
    stage.goes_on().await;
    made.stored.extend(load.stop().await.stored);
    stage.accounts_for(&made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_made_a_replica_and_a_master_again_is_worked_on_again() {
    let stage = Stage::new().await;
    let load = stage.load();
    stage.goes_on().await;
    // Of nobody: it keeps its data, and takes no writes.
    stage.server.tell("REPLICAOF 127.0.0.1 1");
    pass(500).await;
    let mut made = load.stop().await;
    let before = refusals(&stage, "READONLY");
    pass(3_000).await;
    let refused = refusals(&stage, "READONLY") - before;
    stage.server.tell("REPLICAOF NO ONE");
    let load = stage.load();
    let after = stage.goes_on().await;
    println!("a replica for 3.5 s: {refused} refusals of two workers in 3 s; a job ran {after:?} after");
    assert!(refused > 0 && refused <= 2 * 20 * 3, "{refused} refusals in 3 s");
    assert!(after < Duration::from_secs(5), "it goes on after {after:?}");
    made.stored.extend(load.stop().await.stored);
    stage.accounts_for(&made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_too_many_clients_is_tried_until_there_is_room() {
    let stage = Stage::new().await;
    let load = stage.load();
    stage.goes_on().await;
    // The only one that is let in, for as long as it stays.
    let mut operator = TcpStream::connect(("127.0.0.1", stage.server.port())).expect("there is room");
    operator.write_all(b"CONFIG SET maxclients 1\r\nCLIENT KILL TYPE pubsub\r\n").expect("it listens");
    pass(2_000).await;
    operator.write_all(b"CONFIG SET maxclients 10000\r\n").expect("it listens");
    let after = stage.goes_on().await;
    println!("room for clients again: a job ran {after:?} after");
    assert!(after < Duration::from_secs(5), "it goes on after {after:?}");
    let made = load.stop().await;
    assert!(made.errors.is_empty(), "a call waits until there is room: {:?}", made.errors);
    stage.accounts_for(&made).await;
}

/// How often the server has answered with this code.
fn refusals(stage: &Stage, code: &str) -> u64 {
    let info = stage.server.tell("INFO errorstats");
    let counted = info.lines().find_map(|line| line.strip_prefix(&format!("errorstat_{code}:count=")));
    counted.map_or(0, |count| count.trim().parse().expect("a number"))
}

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status();
    assert!(sent.expect("kill is a system's tool").success());
}
