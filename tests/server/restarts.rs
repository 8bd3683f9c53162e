//! A server that ends under load and comes back, politely or not, with all of its data or with what its disk has.

use std::time::{Duration, Instant};

use crate::stage::{Stage, pass, until};

/// Ends a server under load several times, and brings it back each time.
async fn restarts(fsync: &str, times: usize, end: impl AsyncFn(&mut Stage)) {
    let mut stage = Stage::with(&["--appendonly", "yes", "--appendfsync", fsync]).await;
    let load = stage.load();
    let mut slowest = Duration::ZERO;
    for _ in 0..times {
        stage.goes_on().await;
        end(&mut stage).await;
        pass(100).await;
        stage.server.start_again();
        let back = Instant::now();
        stage.goes_on().await;
        slowest = slowest.max(back.elapsed());
    }
    let made = load.stop().await;
    println!(
        "{times} restarts, {fsync}: {} jobs; going on took {slowest:?} at most; the producer met {} errors",
        made.stored.len(),
        made.errors.len()
    );
    assert!(slowest < Duration::from_secs(5), "it goes on after {slowest:?}");
    assert!(made.errors.is_empty(), "a restart is shorter than a call may take: {:?}", made.errors);
    stage.accounts_for(&made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_and_writes_each_step_loses_nothing() {
    restarts("always", 8, async |stage| stage.server.kill()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_and_syncs_each_second_loses_nothing_that_its_host_has() {
    restarts("everysec", 8, async |stage| stage.server.kill()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_shut_down_loses_nothing() {
    restarts("everysec", 4, async |stage| {
        stage.server.tell("SHUTDOWN NOSAVE");
        until("it ends", async || stage.server.has_ended()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_forgotten_all_is_worked_on_from_its_beginning() {
    let mut stage = Stage::new().await;
    let load = stage.load();
    stage.goes_on().await;
    load.stop().await;
    stage.server.kill();
    stage.server.start_again();
    let load = stage.load();
    let after = stage.goes_on().await;
    println!("a server without its data was worked on after {after:?}");
    pass(1_000).await;
    let made = load.stop().await;
    stage.accounts_for(&made).await;
}
