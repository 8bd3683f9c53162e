//! Answers `GET /live` and `GET /ready` with 200 or 503 and the reason: what Kubernetes probes ask for.
//!
//! On a thread of its own, so that it still answers when a task holds up the worker's runtime. One request for each
//! connection; whoever asks is not trusted, and everything from outside is bounded.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};

use super::request::{self, Answer};
use super::vitals::Vitals;
use crate::error::{Error, Result};

/// What a stranger may take of us.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Bytes of a request's head, and of what is read and thrown away behind it.
    bytes: usize,
    /// For a whole connection, in real time.
    time: Duration,
    /// Connections at once; who comes then waits outside.
    connections: usize,
}

const BOUNDS: Bounds = Bounds { bytes: 8 * 1024, time: Duration::from_secs(5), connections: 64 };

/// After a connection could not be accepted: too many open files do not go away in a hot loop.
const PAUSE: Duration = Duration::from_millis(100);

/// An address that is taken, and not yet answered on.
#[derive(Debug)]
pub(in crate::worker) struct Listener {
    socket: std::net::TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes an address; port 0 is any that is free.
    pub(in crate::worker) fn bind(address: SocketAddr) -> Result<Self> {
        let taken = || {
            let socket = std::net::TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        taken().map_err(|source| Error::HealthAddress { address, source })
    }

    pub(in crate::worker) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The thread that answers, seen from the worker's side. Dropping it ends the thread.
#[derive(Debug)]
pub(in crate::worker) struct Answerer {
    end: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Answerer {
    /// Starts the thread.
    pub(in crate::worker) fn start(listener: Listener, vitals: Arc<Vitals>) -> Result<Self> {
        let Listener { socket, address } = listener;
        let (end, told) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let started = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let socket = {
                let _entered = runtime.enter();
                TcpListener::from_std(socket)?
            };
            thread::Builder::new()
                .name("flexiq-health".into())
                .spawn(move || work(runtime, socket, vitals, told, done))
        };
        started().map_err(|source| Error::HealthAddress { address, source })?;
        tracing::info!(%address, "answers /live and /ready");
        Ok(Self { end, ended })
    }

    /// Ends the thread, and waits until its address is free again.
    pub(in crate::worker) async fn close(self) {
        drop(self.end);
        let _ = self.ended.await;
    }
}

/// Answers until it is told to end, and says so when nothing holds the address any more.
fn work(
    runtime: Runtime,
    socket: TcpListener,
    vitals: Arc<Vitals>,
    told: oneshot::Receiver<()>,
    done: oneshot::Sender<()>,
) {
    runtime.block_on(async {
        tokio::select! {
            () = answer_all(socket, vitals, BOUNDS) => unreachable!("it answers for ever"),
            _ = told => {}
        }
    });
    drop(runtime);
    let _ = done.send(());
}

async fn answer_all(socket: TcpListener, vitals: Arc<Vitals>, bounds: Bounds) {
    let places = Arc::new(Semaphore::new(bounds.connections));
    loop {
        let place = places.clone().acquire_owned().await.expect("nobody closes it");
        match socket.accept().await {
            Ok((stream, _)) => {
                let vitals = vitals.clone();
                tokio::spawn(async move {
                    // Whoever is too slow or goes away gets no answer.
                    let _ = tokio::time::timeout(bounds.time, answer(stream, &vitals, bounds)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to ask for the worker's health was not accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Reads one request, answers it and closes.
async fn answer(mut stream: TcpStream, vitals: &Vitals, bounds: Bounds) -> io::Result<()> {
    let head = read_head(&mut stream, bounds.bytes).await?;
    let answer = match &head {
        Some(head) => request::answer(head, || vitals.health()),
        None => Answer::too_large(),
    };
    stream.write_all(answer.to_string().as_bytes()).await?;
    stream.shutdown().await?;
    // What still comes is read: to close before would take the answer back with a reset.
    let mut rest = stream.take(bounds.bytes as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
    Ok(())
}

/// The head of a request, or `None` if it is larger than it may be.
async fn read_head(stream: &mut TcpStream, at_most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::with_capacity(512);
    let mut stream = stream.take(at_most as u64);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return if head.len() < at_most { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(None) };
        }
    }
    Ok(Some(head))
}

#[cfg(test)]
mod tests {
    use super::super::Pulse;
    use super::*;
    use crate::clock::Clock;
    use tokio_util::sync::CancellationToken;

    const PROBE: &[u8] = b"GET /live HTTP/1.1\r\n\r\n";

    /// Answers on the test's own thread, within these bounds.
    async fn answering(bounds: Bounds) -> SocketAddr {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = socket.local_addr().expect("it is bound");
        let clock = Clock::system();
        let pulse = Arc::new(Pulse::new(Duration::from_secs(10), clock.elapsed()));
        let vitals = Vitals::new(&clock, pulse, Arc::default(), CancellationToken::new());
        tokio::spawn(answer_all(socket, vitals, bounds));
        address
    }

    async fn connect(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.expect("somebody listens")
    }

    async fn read(mut stream: TcpStream) -> String {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it is answered to the end");
        answer
    }

    #[tokio::test]
    async fn who_sends_half_a_request_is_cut_off_when_the_time_is_over() {
        let address = answering(Bounds { time: Duration::from_millis(1), ..BOUNDS }).await;
        let mut slow = connect(address).await;
        slow.write_all(b"GET /live").await.expect("it is sent");
        assert_eq!(read(slow).await, "", "nothing is answered");
    }

    #[tokio::test]
    async fn who_comes_when_all_places_are_taken_waits_for_one() {
        let address = answering(Bounds { connections: 2, time: Duration::from_secs(3_600), ..BOUNDS }).await;
        let (first, second) = (connect(address).await, connect(address).await);
        let mut third = connect(address).await;
        third.write_all(PROBE).await.expect("it is sent");
        let mut answered = tokio::spawn(read(third));
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
        }
        assert!(!answered.is_finished(), "two hold the places");
        drop(first);
        assert!((&mut answered).await.expect("no panic").starts_with("HTTP/1.1 200 OK\r\n"));
        drop(second);
    }
}
