//! What a probe is answered, asked over a real socket.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use flexiq::{Error, Queue, Worker};
use flexiq_tests::{Journal, Spy, soon};
use tokio::sync::Notify;

use super::health::HeldUp;
use super::queue;

/// Any port of this host that is free.
const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

#[derive(Clone, Default)]
struct Gate(Arc<Notify>);

#[flexiq::task]
async fn lengthy(#[state] journal: Journal, #[state] gate: Gate) {
    journal.note("lengthy");
    gate.0.notified().await;
}

async fn start(queue: &Queue, journal: &Journal, gate: &Gate) -> Worker {
    let builder = queue.worker().tasks([task_lengthy()]).state(journal.clone()).state(gate.clone());
    builder.health_on(ANY).start().await.expect("it starts")
}

fn address(worker: &Worker) -> SocketAddr {
    worker.health_address().expect("it answers")
}

/// Sends this, and reads the answer until its end.
fn send(to: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(to).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("it takes a time");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered to the end");
    answer
}

/// The status and the text of an answer.
fn get(to: SocketAddr, path: &str) -> (u16, String) {
    let answer =
        send(to, &format!("GET {path} HTTP/1.1\r\nHost: {to}\r\nUser-Agent: kube-probe/1.33\r\n\r\n"));
    let (head, text) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", text.len())), "{head}");
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|head| head[..3].parse().ok());
    (status.expect("a status"), text.to_owned())
}

#[tokio::test]
async fn a_probe_is_answered_from_the_start_until_the_worker_has_stopped() {
    let (queue, _clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate::default());
    let worker = start(&queue, &journal, &gate).await;
    let address = address(&worker);
    enqueue_lengthy(&queue).await.expect("stored");
    journal.wait_for("lengthy", 1).await;
    assert_eq!(get(address, "/live"), (200, "live\n".into()));
    assert_eq!(get(address, "/ready?verbose"), (200, "ready\n".into()));
    let stopping = tokio::spawn(worker.shutdown());
    // The shutdown has begun when its task was polled once, and waits for the run.
    tokio::task::yield_now().await;
    assert_eq!(get(address, "/ready"), (503, "the worker stops\n".into()));
    assert_eq!(get(address, "/live"), (200, "live\n".into()));
    gate.0.notify_one();
    soon("it stops", stopping).await.expect("no panic").expect("it stops");
    let refused = TcpStream::connect(address).expect_err("nobody listens any more");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    TcpListener::bind(address).expect("the next worker may have the port at once");
}

#[tokio::test]
async fn a_probe_is_told_that_a_task_holds_up_the_runtime() {
    let held = HeldUp::start(|builder| builder.health_on(ANY)).await;
    let address = address(&held.worker);
    assert_eq!(get(address, "/live"), (200, "live\n".into()));
    held.pass(4).await;
    let reason = "the pump has stood still for 40 s: does an async task hold up the runtime?\n";
    assert_eq!(get(address, "/live"), (503, reason.into()));
    assert_eq!(get(address, "/ready"), (503, reason.into()));
    held.release();
}

#[tokio::test]
async fn what_is_no_probe_is_told_what_to_ask_for() {
    let (queue, _clock) = queue().await;
    let worker = start(&queue, &Journal::default(), &Gate::default()).await;
    let address = address(&worker);
    assert_eq!(get(address, "/"), (404, "ask for /live or /ready\n".into()));
    let refused = send(address, "POST /live HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
    assert!(
        refused.starts_with("HTTP/1.1 405 ") && refused.contains("\r\nAllow: GET, HEAD\r\n"),
        "{refused}"
    );
    let head_only = send(address, "HEAD /live HTTP/1.1\r\n\r\n");
    assert!(head_only.starts_with("HTTP/1.1 200 OK\r\n") && head_only.ends_with("\r\n\r\n"), "{head_only}");
    for nonsense in ["\r\n\r\n", "GET /live\r\n\r\n", "GET /live SMTP\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n"] {
        let refused = send(address, nonsense);
        assert!(refused.starts_with("HTTP/1.1 400 "), "{nonsense:?}: {refused}");
    }
    let endless = send(address, &format!("GET /live HTTP/1.1\r\nCookie: {}", "x".repeat(9_000)));
    assert!(endless.starts_with("HTTP/1.1 431 "), "{endless}");
}

#[tokio::test]
async fn a_port_in_use_is_an_error_at_the_start_and_nothing_has_started() {
    let (queue, _clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    let taken = TcpListener::bind(ANY).expect("a port is free");
    let taken = taken.local_addr().map(|address| (taken, address));
    let (_taken, address) = taken.expect("it is bound");
    let builder = queue.worker().tasks([task_lengthy()]).state(Journal::default()).state(Gate::default());
    let error = builder.health_on(address).start().await.map(drop).expect_err("somebody has the port");
    assert!(matches!(&error, Error::HealthAddress { address: asked, .. } if *asked == address), "{error:?}");
    let told = error.to_string();
    assert!(told.contains(&address.to_string()) && told.contains("in use"), "{told}");
    assert_eq!(spy.registered(), [], "no worker has said hello");
}
