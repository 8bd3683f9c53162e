//! Connections that have died without anybody saying so.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flexiq::{Queue, State};
use flexiq_tests::redis_server::Server;
use flexiq_tests::soon;

use crate::stage::{Runs, enqueue_brief, enqueue_narrow, until};

/// Stands before a server, and can let all connections die that it has: nothing comes through any more, neither way.
struct Path {
    port: u16,
    dead: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
}

impl Path {
    fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let (dead, made) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (target, graves, births) = (server.port(), dead.clone(), made.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let number = births.fetch_add(1, Ordering::SeqCst) + 1;
                let server = TcpStream::connect(("127.0.0.1", target)).expect("the server listens");
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().expect("a copy"), to.try_clone().expect("a copy"));
                    let graves = graves.clone();
                    thread::spawn(move || carry(from, to, number, &graves));
                }
            }
        });
        Self { port, dead, made }
    }

    /// Lets all connections die that there are.
    fn die(&self) {
        self.dead.store(self.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, number: usize, dead: &AtomicUsize) {
    let mut bytes = [0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if number <= dead.load(Ordering::SeqCst) {
            // Neither an answer nor an end, for as long as the test lives.
            continue;
        }
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    if number > dead.load(Ordering::SeqCst) {
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_dies_silently_costs_a_worker_no_run() {
    let server = Server::start();
    let path = Path::to(&server);
    let queue = Queue::open(server.tcp_url()).await.expect("the store opens");
    let runs = Runs::default();
    let far = Queue::open(path.url()).await.expect("the store opens");
    let builder = far.worker().state(runs.clone()).queues(["brief", "narrow"]);
    let worker = builder.lease(Duration::from_secs(10)).start().await.expect("it starts");
    // A cap counts the second: it would be stopped before its lease could end.
    let jobs = [
        enqueue_brief(&queue, 9_500).await.expect("stored"),
        enqueue_narrow(&queue, 9_500).await.expect("stored"),
    ];
    for job in &jobs {
        until("it runs", async || job.status().await.expect("it is there").state == State::Running).await;
    }
    path.die();
    let quick = enqueue_brief(&queue, 0).await.expect("stored");
    let begun = Instant::now();
    soon("the worker comes back", quick.result()).await.expect("it succeeds");
    let after = begun.elapsed();
    println!("a job that was stored when the connection died ran after {after:?}");
    assert!(after < Duration::from_millis(6_500), "{after:?}: two beats, and no more");
    for job in &jobs {
        soon("it ends", job.result()).await.expect("it succeeds");
        let job = job.status().await.expect("it is there");
        assert_eq!((job.runs, job.losses), (1, 0), "{job:?}");
    }
    worker.shutdown().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_whose_connection_dies_silently_is_told_and_then_goes_on() {
    let server = Server::start();
    let path = Path::to(&server);
    let queue = Queue::builder(path.url()).timeout(Duration::from_secs(1));
    let queue = queue.open().await.expect("the store opens");
    enqueue_brief(&queue, 0).await.expect("stored");
    path.die();
    let error = enqueue_brief(&queue, 0).await.expect_err("nobody answers");
    assert!(error.to_string().contains("whether it was stored is unknown"), "{error}");
    enqueue_brief(&queue, 0).await.expect("stored over a new connection");
}
