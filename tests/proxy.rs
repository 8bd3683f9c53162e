//! A proxy before a Redis of the tests: it counts requests, and cuts a connection before or after a chosen one.
//!
//! It reads what passes, so that "after" means: the server has carried the request out, and its answer is lost.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::redis_server::Server;

/// Verbs that open a connection or ask whether one is still there: they are passed on and not counted.
const UNCOUNTED: [&[u8]; 6] = [b"HELLO", b"AUTH", b"SELECT", b"CLIENT", b"SUBSCRIBE", b"PING"];

/// What of a request is lost with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The request: the server never hears of it.
    Request,
    /// The answer: the server has carried the request out.
    Answer,
}

/// A proxy before a server.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    plan: Arc<Plan>,
}

#[derive(Debug, Default)]
struct Plan(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Requests that have come in.
    requests: u64,
    /// What is lost of those that will, by their number.
    cuts: HashMap<u64, Cut>,
    /// Nobody is let in any more.
    is_shut: bool,
}

impl Plan {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request; answers what of it is lost.
    fn count(&self) -> Option<Cut> {
        let mut state = self.lock();
        state.requests += 1;
        let number = state.requests;
        state.cuts.remove(&number)
    }
}

impl Proxy {
    /// Stands before a server, and passes on everything.
    ///
    /// # Panics
    ///
    /// Where no port is free.
    pub fn before(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let plan = Arc::<Plan>::default();
        let (to, of_all) = (server.port(), plan.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if of_all.lock().is_shut {
                    return;
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", to)) {
                    pass_on(client, server, of_all.clone());
                }
            }
        });
        Self { port, plan }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// How many requests have come in.
    pub fn requests(&self) -> u64 {
        self.plan.lock().requests
    }

    /// Cuts the connection of the request of this number, the next being [`requests`](Self::requests) + 1.
    pub fn cut(&self, number: u64, cut: Cut) {
        self.plan.lock().cuts.insert(number, cut);
    }

    /// Whether all that was to be cut has been.
    pub fn has_cut(&self) -> bool {
        self.plan.lock().cuts.is_empty()
    }

    /// Lets nobody in any more. What is connected stays so.
    pub fn shut(&self) {
        self.plan.lock().is_shut = true;
        // The one that is waited for is turned away.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shut();
    }
}

/// Of the answers that are outstanding, in order: whether they are lost.
type Outstanding = Arc<Mutex<VecDeque<bool>>>;

/// Passes on what two ends say to each other, on two threads.
fn pass_on(client: TcpStream, server: TcpStream, plan: Arc<Plan>) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (Ok(to_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { return };
    let outstanding = Outstanding::default();
    let asked = outstanding.clone();
    thread::spawn(move || {
        each_value(client, &to_server, |request| {
            let verb = verb_of(request);
            let is_cut = if UNCOUNTED.contains(&&*verb) {
                false
            } else {
                match plan.count() {
                    Some(Cut::Request) => return false,
                    cut => cut == Some(Cut::Answer),
                }
            };
            // A subscription is answered by a message.
            if verb != b"SUBSCRIBE" {
                lock(&asked).push_back(is_cut);
            }
            true
        });
    });
    thread::spawn(move || {
        each_value(server, &to_client, |value| {
            value[0] == b'>' || lock(&outstanding).pop_front() != Some(true)
        });
    });
}

fn lock(outstanding: &Outstanding) -> MutexGuard<'_, VecDeque<bool>> {
    outstanding.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes on whole values from one end to the other, until one is refused or an end hangs up; then both do.
fn each_value(mut from: TcpStream, mut to: &TcpStream, mut passes: impl FnMut(&[u8]) -> bool) {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 16_384];
    'connected: while let Ok(length @ 1..) = from.read(&mut piece) {
        bytes.extend_from_slice(&piece[..length]);
        while let Some(length) = length_of(&bytes) {
            let value: Vec<u8> = bytes.drain(..length).collect();
            if !passes(&value) || to.write_all(&value).is_err() {
                break 'connected;
            }
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// The bytes of the first value; `None` if it is not all there.
fn length_of(bytes: &[u8]) -> Option<usize> {
    let line = 2 + bytes.windows(2).position(|end| end == b"\r\n")?;
    let number = || str::from_utf8(&bytes[1..line - 2]).ok()?.parse::<i64>().ok();
    let parts = match bytes[0] {
        b'$' | b'=' | b'!' => {
            let all = usize::try_from(number()?).map_or(line, |length| line + length + 2);
            return (bytes.len() >= all).then_some(all);
        }
        b'*' | b'~' | b'>' => number()?,
        b'%' | b'|' => 2 * number()?,
        _ => 0,
    };
    let mut all = line;
    for _ in 0..parts {
        all += length_of(bytes.get(all..)?)?;
    }
    Some(all)
}

/// The verb of a request: the first of its words.
fn verb_of(request: &[u8]) -> Vec<u8> {
    let word = request.split(|byte| *byte == b'\n').nth(2).unwrap_or_default();
    word.trim_ascii_end().to_ascii_uppercase()
}
