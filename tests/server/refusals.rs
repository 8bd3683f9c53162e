//! Servers that are not ones to use say so when they are opened, each in words that tell what to change.

use std::time::{Duration, Instant};

use flexiq::{Error, Queue};
use flexiq_tests::redis_server::Server;

/// What opening this URL says.
async fn refusal(url: String) -> String {
    let error = Queue::open(url).await.expect_err("it is refused");
    assert!(matches!(error, Error::StoreRefused { .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("sesame"), "no password is shown: {error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_replica_is_refused() {
    let server = Server::start();
    server.tell("REPLICAOF 127.0.0.1 1");
    let error = refusal(server.tcp_url()).await;
    assert!(error.contains("it is a replica: name the master"), "{error}");
}

#[tokio::test]
async fn a_store_that_must_exist_is_refused_where_there_is_none_and_nothing_is_written() {
    let server = Server::start();
    let url = format!("{}?prefix=shop", server.tcp_url());
    let error = Queue::builder(&url).must_exist().open().await.expect_err("there is no store").to_string();
    assert!(error.contains("there is no store with the prefix \"shop\""), "{error}");
    assert_eq!(server.tell("DBSIZE").trim(), ":0");
    Queue::open(&url).await.expect("it is created");
    Queue::builder(&url).must_exist().open().await.expect("it is there");
}

#[tokio::test]
async fn a_server_that_may_evict_jobs_is_refused_unless_that_cannot_be_seen() {
    let server = Server::start();
    server.tell("CONFIG SET maxmemory-policy volatile-ttl");
    let error = refusal(server.tcp_url()).await;
    assert!(error.contains("set maxmemory-policy noeviction"), "{error}");
    server.tell("ACL SETUSER blind on nopass ~* &* +@all -info");
    let url = server.tcp_url().replace("redis://", "redis://blind:x@");
    Queue::open(url).await.expect("it is opened, with a warning");
}

#[tokio::test]
async fn a_password_that_is_wrong_or_absent_is_named_and_never_shown() {
    let server = Server::start();
    server.tell("CONFIG SET requirepass sesame");
    let error = refusal(server.tcp_url()).await;
    assert!(error.contains("it wants a password: write redis://:password@host"), "{error}");
    for login in [":sesame2", "ada:sesame2"] {
        let error = refusal(server.tcp_url().replace("redis://", &format!("redis://{login}@"))).await;
        assert!(error.contains("user or password are wrong"), "{error}");
    }
}

#[tokio::test]
async fn where_nobody_listens_or_nobody_answers_that_is_said_and_not_waited_for() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = silent.local_addr().expect("it is bound").port();
    let begun = Instant::now();
    let queue = Queue::builder(format!("redis://127.0.0.1:{port}")).timeout(Duration::from_secs(1));
    let error = queue.open().await.expect_err("nobody answers");
    assert!(error.to_string().contains("it does not answer"), "{error}");
    drop(silent);
    let error = Queue::open(format!("redis://:sesame@127.0.0.1:{port}")).await.expect_err("nobody listens");
    assert!(error.to_string().contains("nobody listens there") && !error.to_string().contains("sesame"));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
