//! What only a store behind a connection can meet: it breaks, the server is full, or it is not one to use.

use std::sync::Arc;

use flexiq::internals::redis::{RedisOptions, RedisStore};
use flexiq::internals::{Change, Clock, Due, Enqueue, JobKey, NewJob, Scope};
use flexiq::{Cause, Effect, Error, State};
use flexiq_tests::redis_server::Server;

use crate::harness::*;

fn options(server: &Server) -> RedisOptions {
    RedisOptions::from_url(&server.url()).expect("the URL is one of Redis")
}

async fn open(server: &Server) -> Arc<RedisStore> {
    RedisStore::open(options(server)).await.expect("the store opens")
}

fn batch(jobs: Vec<NewJob>) -> Enqueue {
    Enqueue { queue: name("q"), jobs, max_pending: None, producer: None }
}

#[tokio::test]
async fn a_connection_that_breaks_is_made_anew_and_sleepers_look_for_themselves() {
    let server = Server::start();
    let mine = Bench::on(open(&server).await).await;
    let (_, wait) = asleep(&mine, &["send"]).await;
    server.tell("CLIENT KILL TYPE normal SKIPME yes");
    server.tell("CLIENT KILL TYPE pubsub SKIPME yes");
    assert_eq!(woken(wait).await, ["q"], "it cannot know what was rung");
    let id = mine.enqueue(job("send")).await;
    assert_eq!(mine.state(id).await, State::Ready);
    let (_, wait) = asleep(&mine, &["other"]).await;
    mine.enqueue(job("other")).await;
    assert_eq!(woken(wait).await, ["q"], "messages come over the new connection");
}

#[tokio::test]
async fn scripts_that_the_server_has_forgotten_are_brought_again() {
    let server = Server::start();
    let bench = Bench::on(open(&server).await).await;
    bench.enqueue(job("send")).await;
    server.tell("SCRIPT FLUSH");
    assert_eq!(bench.claim(bench.living, &["send"], 5).await.len(), 1);
}

#[tokio::test]
async fn a_full_server_takes_no_job_and_still_lets_what_runs_be_finished() {
    let server = Server::start();
    let store = open(&server).await;
    let bench = Bench::on(store.clone()).await;
    let id = bench.enqueue(job("send")).await;
    let held = bench.claim(bench.living, &["send"], 1).await;
    server.tell("CONFIG SET maxmemory 1mb");
    let error =
        flexiq::internals::Store::enqueue(&*store, batch(jobs("send", 1))).await.expect_err("it is full");
    assert!(matches!(error, Error::StoreRefused { .. }), "{error:?}");
    assert!(error.to_string().contains("raise maxmemory"), "{error}");
    bench.finish(bench.living, held[0].lease, succeed()).await;
    assert_eq!(bench.state(id).await, State::Succeeded);
    server.tell("CONFIG SET maxmemory 0");
    bench.enqueue(job("send")).await;
    let counts = bench.counts("send").await;
    assert_eq!(
        (counts.ready, counts.running, counts.succeeded),
        (1, 0, 1),
        "the refusal left nothing behind"
    );
}

/// Commands that the server has carried out, those of scripts among them, beside those that look.
fn calls(server: &Server) -> u64 {
    let told = server.tell("INFO commandstats");
    let counted =
        told.lines().filter(|line| !line.contains("cmdstat_info") && !line.contains("cmdstat_ping"));
    let calls = counted.filter_map(|line| line.split_once("calls=")?.1.split(',').next());
    calls.map(|calls| calls.parse::<u64>().expect("a number")).sum()
}

#[tokio::test]
async fn a_look_costs_the_same_however_much_waits() {
    let mut costs = Vec::new();
    for thousands in [2, 20] {
        let server = Server::start();
        let bench = Bench::on(open(&server).await).await;
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        let mut last = None;
        for _ in 0..thousands {
            last = bench.enqueue_many("q", jobs("send", 1_000)).await.last().map(|stored| stored.id);
        }
        bench.claim(bench.living, &["send"], 1).await;
        bench.counts("send").await;
        let before = calls(&server);
        assert_eq!(bench.counts("send").await.ready, thousands * 1_000 - 1);
        let told = bench.explain(last.expect("jobs were stored")).await;
        assert!(told.causes.contains(&Cause::Behind { jobs: 1_000, outranked: false }), "{told:?}");
        costs.push(calls(&server) - before);
    }
    assert!(costs[0] > 10 && costs[0] == costs[1], "{costs:?}");
}

#[tokio::test]
async fn two_handles_wake_each_other_and_tell_each_other_ends() {
    let server = Server::start();
    let (one, other) = (Bench::on(open(&server).await).await, Bench::on(open(&server).await).await);
    let (worker, wait) = asleep(&one, &["send"]).await;
    let id = other.enqueue(job("send")).await;
    assert_eq!(woken(wait).await, ["q"]);
    let held = one.claim(worker, &["send"], 1).await;
    let mut ended = other.store.ended(JobKey { queue: name("q"), id });
    assert!(other.is_pending(&mut ended).await);
    one.finish(worker, held[0].lease, succeed()).await;
    assert!(soon(ended).await.expect("answers").is_some());
}

#[tokio::test]
async fn the_time_is_kept_by_another_handle_when_the_first_leaves() {
    let server = Server::start();
    let (clock, hands) = Clock::manual(START);
    let mut options = options(&server);
    options.clock = clock;
    let one = Bench::on(RedisStore::open(options.clone()).await.expect("the store opens")).await;
    let other = Bench::on(RedisStore::open(options).await.expect("the store opens")).await;
    // Each handle counts its own waits: both are the first.
    let (_, keeper) = asleep(&one, &["send"]).await;
    let (_, mut heir) = asleep(&other, &["send"]).await;
    one.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
    drop(keeper);
    assert!(other.is_pending(&mut heir).await);
    hands.advance(secs(1));
    assert_eq!(woken(heir).await, ["q"]);
}

#[tokio::test]
async fn a_worker_does_not_share_with_the_wait_that_it_is_about_to_leave() {
    let bench = Bench::redis().await;
    let (_, woken_first) = asleep(&bench, &["send"]).await;
    let (worker, wait) = asleep(&bench, &["send"]).await;
    bench.enqueue_many("q", jobs("send", 4)).await;
    assert_eq!(woken(woken_first).await, ["q"]);
    // A run of the other ends: it claims, and the news that it waits no longer comes late.
    assert_eq!(bench.claim(worker, &["send"], 10).await.len(), 4);
    drop(wait);
}

#[tokio::test]
async fn a_moment_that_is_called_off_hides_none_that_comes_after_it() {
    let bench = Bench::redis().await;
    let first = bench.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
    bench.enqueue(NewJob { due: Due::In(secs(2)), ..job("send") }).await;
    let (_, mut wait) = asleep(&bench, &["send"]).await;
    bench.store.cancel(first).await.expect("answers");
    // The old moment comes at once with the news of the new one.
    bench.hands.advance(secs(1));
    assert!(bench.is_pending(&mut wait).await);
    bench.hands.advance(secs(1));
    assert_eq!(woken(wait).await, ["q"]);
}

#[tokio::test]
async fn a_job_that_becomes_due_in_the_servers_time_wakes_a_sleeper_then() {
    let server = Server::start();
    let bench = Bench::on(open(&server).await).await;
    let (worker, wait) = asleep(&bench, &["send"]).await;
    let begun = std::time::Instant::now();
    bench.enqueue(NewJob { due: Due::In(millis(80)), ..job("send") }).await;
    assert_eq!(woken(wait).await, ["q"]);
    let claimed = bench.claim(worker, &["send"], 1).await;
    assert_eq!(claimed.len(), 1, "not before its time");
    assert!(begun.elapsed() >= millis(79));
    assert!(claimed[0].claimed_at >= claimed[0].ready_at);
}

#[tokio::test]
async fn a_limit_that_is_set_before_a_queue_is_known_holds_in_it() {
    let server = Server::start();
    let bench = Bench::on(open(&server).await).await;
    let scope = Scope::Task(name("send"));
    bench.store.limit(scope, Change::MaxConcurrent(Some(1))).await.expect("the limit is set");
    bench.enqueue_many("q", jobs("send", 3)).await;
    assert_eq!(bench.claim(bench.living, &["send"], 3).await.len(), 1);
}

#[tokio::test]
async fn a_server_that_may_evict_jobs_or_wants_a_password_is_refused() {
    let server = Server::start();
    server.tell("CONFIG SET maxmemory-policy allkeys-lru");
    let error = RedisStore::open(options(&server)).await.expect_err("it may evict jobs");
    assert!(error.to_string().contains("set maxmemory-policy noeviction"), "{error}");
    server.tell("CONFIG SET requirepass secret");
    let error = RedisStore::open(options(&server)).await.expect_err("it wants a password");
    assert!(matches!(error, Error::StoreRefused { .. }), "{error:?}");
    let url = server.url().replace("unix://", "unix://:wrong@");
    let wrong = RedisOptions::from_url(&url).expect("the URL is one of Redis");
    let error = RedisStore::open(wrong).await.expect_err("the password is wrong");
    assert!(error.to_string().contains("wrong") && !format!("{error:?}").contains(":wrong@"), "{error}");
}

#[tokio::test]
async fn where_nobody_listens_nothing_was_stored() {
    let folder = Folder::new();
    let url = format!("unix://{}", folder.file("no.sock").display());
    let error =
        RedisStore::open(RedisOptions::from_url(&url).expect("a URL")).await.expect_err("nobody listens");
    assert!(matches!(error, Error::StoreUnavailable { effect: Effect::None, .. }), "{error:?}");
}
