//! How often a worker tries while its server is away, and what waits for its return.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flexiq_tests::soon;

use crate::stage::{Stage, enqueue_brief, pass};
use crate::told;

/// What stands in for a server.
#[derive(Clone, Copy, Debug)]
enum Stand {
    /// Ends each connection.
    Closes,
    /// Says nothing.
    Silent,
    /// Says that it loads its data, to each command.
    Loads,
}

/// Listens in a server's place, and counts what comes: connections, and commands that it answers.
struct StandIn {
    stop: Arc<AtomicBool>,
    tries: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl StandIn {
    fn at(port: u16, stand: Stand) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("the server has left its port");
        listener.set_nonblocking(true).expect("it can be asked");
        let (stop, tries) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, counted) = (stop.clone(), tries.clone());
        let thread = std::thread::spawn(move || {
            let mut held = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        counted.fetch_add(1, Ordering::Relaxed);
                        match stand {
                            Stand::Closes => drop(stream),
                            Stand::Silent => held.push(stream),
                            Stand::Loads => {
                                std::thread::spawn(move || say_loading(&stream));
                            }
                        }
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        Self { stop, tries, thread }
    }

    fn leave(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic");
        self.tries.load(Ordering::Relaxed)
    }
}

/// Lets everybody in, as a server does that loads, and answers nothing else.
fn say_loading(mut stream: &TcpStream) {
    let mut read = [0; 4096];
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    while let Ok(length @ 1..) = stream.read(&mut read) {
        let asked = String::from_utf8_lossy(&read[..length]).to_uppercase();
        let mut answer = String::new();
        for line in asked.split("\r\n") {
            answer += match line {
                "HELLO" => "%1\r\n+proto\r\n:3\r\n",
                "CLIENT" => "+OK\r\n",
                "SUBSCRIBE" => ">3\r\n+subscribe\r\n$1\r\na\r\n:1\r\n>3\r\n+subscribe\r\n$1\r\nb\r\n:2\r\n",
                "PING" | "EVALSHA" | "SMEMBERS" => "-LOADING Redis is loading the dataset in memory\r\n",
                _ => "",
            };
        }
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Puts something else in a busy fleet's place for some seconds; answers the tries per second of one handle.
async fn while_it_is_away(stand: Stand) -> f64 {
    told::listen();
    let mut stage = Stage::with(&["--appendonly", "yes", "--appendfsync", "always"]).await;
    let load = stage.load();
    stage.goes_on().await;
    let far = enqueue_brief(&stage.queue, 10).delay(Duration::from_secs(4)).await.expect("stored");
    let results: Vec<_> = (0..50).map(|_| tokio::spawn(far.result())).collect();

    stage.server.kill();
    let begun = Instant::now();
    let stand_in = StandIn::at(stage.server.port(), stand);
    pass(6_000).await;
    let tries = stand_in.leave() as f64 / begun.elapsed().as_secs_f64() / 3.0;
    stage.server.start_again();
    let after = stage.goes_on().await;
    let lines = told::count("the store is away", &format!("127.0.0.1:{}/", stage.server.port()));
    assert_eq!(lines, 2, "each of the two workers says once that its store is away");
    println!("{stand:?}: {tries:.1} tries a second of each handle; a job ran {after:?} after the return");
    assert!(after < Duration::from_secs(5), "it goes on after {after:?}");
    for result in results {
        soon("the result comes", result).await.expect("no panic").expect("it outlasts the server's absence");
    }
    let mut made = load.stop().await;
    made.stored.push(far.id());
    stage.accounts_for(&made).await;
    tries
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_each_connection_is_tried_seldom_and_gone_on_with() {
    let tries = while_it_is_away(Stand::Closes).await;
    assert!(tries < 20.0 && tries > 0.5, "{tries} tries a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lets_in_and_says_nothing_is_tried_seldom_and_gone_on_with() {
    let tries = while_it_is_away(Stand::Silent).await;
    assert!(tries < 20.0 && tries > 0.1, "{tries} tries a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_loads_its_data_is_tried_seldom_and_gone_on_with() {
    let tries = while_it_is_away(Stand::Loads).await;
    assert!(tries < 20.0 && tries > 0.5, "{tries} tries a second");
}
