//! A user who may do what the book says and nothing else can do all that flexiq does, and needs each word of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use flexiq::{Error, Queue, State};
use flexiq_tests::redis_server::Server;
use flexiq_tests::{soon, until};

use crate::stage::{LEASE, Runs, enqueue_brief, enqueue_narrow, pass, worker};

/// Words of commands that are no commands.
const OPTIONS: [&str; 4] = ["LIMIT", "WITHSCORES", "COUNT", "BYLEX"];

/// The line of the book.
fn line() -> String {
    let book = include_str!("../../book/src/redis.md");
    book.lines().find(|line| line.starts_with("ACL SETUSER")).expect("the book has the line").into()
}

fn url(server: &Server) -> String {
    server.tcp_url().replace("redis://", "redis://flexiq:password@")
}

#[tokio::test]
async fn the_user_of_the_book_can_do_all_that_flexiq_does() {
    let server = Server::start();
    assert!(server.tell(&line()).starts_with("+OK"));
    let queue = Queue::open(url(&server)).await.expect("the store opens");
    let runs = Runs::default();
    let worker = worker(&queue, &runs).await;

    let job = enqueue_narrow(&queue, 0).await.expect("stored");
    soon("it ends", job.result()).await.expect("it succeeds");
    let many = queue.enqueue_many((0..20).map(|_| enqueue_brief(&queue, 0))).await.expect("stored");
    for job in &many {
        soon("it ends", job.result()).await.expect("it succeeds");
    }
    // Through a promotion, some beats, an expiry and a call to a run.
    let late = enqueue_brief(&queue, 0).delay(Duration::from_millis(1_500)).await.expect("stored");
    soon("it ends", late.result()).await.expect("it succeeds");
    queue.set_task_rate_limit("brief", "100/s").await.expect("set");
    queue.set_task_concurrency("brief", 5).await.expect("set");
    queue.pause_task("brief").await.expect("paused");
    let expiring = enqueue_brief(&queue, 0).expires(Duration::from_millis(200)).await.expect("stored");
    until(&queue, expiring.id(), "it expires", |job| job.state.is_ended()).await;
    let cancelled = enqueue_brief(&queue, 0).await.expect("stored");
    cancelled.cancel().await.expect("cancelled");
    assert!(queue.retry(cancelled.id()).await.expect("retried"));
    cancelled.explain().await.expect("explained");
    queue.resume_task("brief").await.expect("resumed");
    soon("it ends", cancelled.result()).await.expect("it succeeds");
    let long = enqueue_brief(&queue, 60_000).await.expect("stored");
    until(&queue, long.id(), "it runs", |job| job.state == State::Running).await;
    long.cancel().await.expect("requested");
    until(&queue, long.id(), "it is told", |job| job.state == State::Cancelled).await;
    assert!(queue.delete(long.id()).await.expect("deleted"));
    queue.limits().await.expect("shown");
    assert_eq!(queue.doctor().fix().await.expect("checked"), []);
    pass(LEASE.as_millis() as u64).await;
    worker.shutdown().await.expect("it stops");
    let failures = server.tell("ACL LOG");
    // What drivers try is not ours: only a key, a channel or a script's command would be.
    assert!(!failures.contains("lua"), "{failures}");
}

#[tokio::test]
async fn a_user_who_may_not_do_enough_is_told_where_the_line_is() {
    let server = Server::start();
    server.tell(&line());
    let error = Queue::open(format!("{}?prefix=shop", url(&server))).await.expect_err("it is forbidden");
    assert!(matches!(error, Error::StoreRefused { .. }), "{error:?}");
    assert!(error.to_string().contains("its ACL forbids"), "{error}");
    assert!(!format!("{error:?}").contains("password"), "{error:?}");
    server.tell("ACL SETUSER flexiq -zrangebylex");
    let queue = Queue::open(url(&server)).await.expect("it opens");
    queue
        .worker()
        .state(Runs::default())
        .start()
        .await
        .expect("it starts")
        .shutdown()
        .await
        .expect("it stops");
}

#[test]
fn the_line_of_the_book_names_the_commands_of_the_scripts_and_no_others() {
    // Those that are sent from Rust stand there as they are here; those of scripts are read.
    let sent = ["ping", "info", "subscribe", "eval", "evalsha", "zscan"];
    let mut used: BTreeSet<String> = sent.map(Into::into).into_iter().collect();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../flexiq/src/store/redis");
    for folder in ["lua", "lua/lib", "lua/check"] {
        for file in std::fs::read_dir(source.join(folder)).expect("the sources are there") {
            let path = file.expect("it can be read").path();
            if path.is_file() {
                used.extend(commands(&std::fs::read_to_string(path).expect("it is text")));
            }
        }
    }
    let line = line();
    let named: BTreeSet<String> =
        line.split(' ').filter_map(|word| word.strip_prefix('+')).map(Into::into).collect();
    assert_eq!(named, used);
}

/// What a source names in quotes and capitals; what only modifies a command is none.
fn commands(source: &str) -> impl Iterator<Item = String> {
    let quoted = source.split(['\'', '"']);
    let is_command = |word: &&str| word.len() > 2 && word.bytes().all(|letter| letter.is_ascii_uppercase());
    quoted.filter(is_command).filter(|word| !OPTIONS.contains(word)).map(str::to_lowercase)
}
