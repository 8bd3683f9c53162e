//! An idle fleet is silent: what its workers send to Redis, counted by the server itself.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flexiq_tests::redis_server::Server;
use redis::{Client, Connection, Value};

use super::suite::dose::dose;
use super::suite::process::Process;

const WORKERS: usize = 5;
const LEASE: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(1);
/// No worker says anything for so long when it has started.
const QUIET: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn an_idle_worker_sends_at_most_one_command_a_second_for_its_queue() {
    let server = Server::start();
    let mut monitor = Monitor::of(&server);
    let _workers = [(); WORKERS].map(|()| Process::start(&server.tcp_url(), LEASE, GRACE));
    monitor.until_all_have_started();
    let window = Duration::from_secs(if dose() > 1 { 60 } else { 10 });
    let sent = monitor.commands_within(window);
    let (most, all) = (sent.values().max().copied().unwrap_or_default(), sent.values().sum::<usize>());
    println!("{WORKERS} idle workers sent {all} commands in {window:?}, and none more than {most}");
    assert_eq!(sent.len(), WORKERS, "each of them lives: {sent:?}");
    assert!(most as u64 <= window.as_secs(), "{sent:?}");
}

/// Hears every command that is sent to a server, and by whom.
struct Monitor {
    connection: Connection,
}

impl Monitor {
    fn of(server: &Server) -> Self {
        let client = Client::open(server.tcp_url()).expect("the URL is one of Redis");
        let mut connection = client.get_connection().expect("the server answers");
        connection.send_packed_command(&redis::cmd("MONITOR").get_packed_command()).expect("it can be sent");
        assert_eq!(connection.recv_response().expect("it is answered"), Value::Okay);
        Self { connection }
    }

    /// The address of who sends the next command; none if nobody does until then. What a script calls is not sent.
    fn next(&mut self, until: Instant) -> Option<String> {
        loop {
            let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            self.connection.set_read_timeout(Some(left)).expect("it is a socket");
            let Ok(Value::SimpleString(line)) = self.connection.recv_response() else { return None };
            // `1700000000.123456 [0 127.0.0.1:50000] "PING"`
            let sender = line.split(['[', ']']).nth(1).and_then(|sender| sender.split_once(' '));
            match sender {
                Some((_, "lua")) | None => {}
                Some((_, address)) => return Some(address.into()),
            }
        }
    }

    fn until_all_have_started(&mut self) {
        let mut seen = BTreeMap::new();
        let patience = Instant::now() + PATIENCE;
        loop {
            match self.next(Instant::now() + QUIET) {
                Some(sender) => *seen.entry(sender).or_insert(0) += 1,
                None if seen.len() >= WORKERS => return,
                None => {}
            }
            assert!(Instant::now() < patience, "the workers start and are silent: {seen:?}");
        }
    }

    /// How many commands each sends.
    fn commands_within(&mut self, window: Duration) -> BTreeMap<String, usize> {
        let (mut sent, end) = (BTreeMap::new(), Instant::now() + window);
        while let Some(sender) = self.next(end) {
            *sent.entry(sender).or_insert(0) += 1;
        }
        sent
    }
}
