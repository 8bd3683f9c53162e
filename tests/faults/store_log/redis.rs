//! `MONITOR` tells every command that the server carries out, also those of scripts, in their order: each move of a job
//! writes its body or its run.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use flexiq::JobId;
use redis::{Client, Value};

use super::{Move, RUNNING, Told};

/// The code of a job that is ready, or will be.
const PENDING: i64 = 1;
/// How long the server may take to tell what it has done.
const PATIENCE: Duration = Duration::from_secs(30);

/// The log of one store.
pub(crate) struct Log {
    client: Client,
    heard: Arc<Heard>,
}

/// What the server has told so far.
#[derive(Default)]
struct Heard {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    told: Told,
    lines: i64,
    states: HashMap<JobId, i64>,
    /// The newest word that was sent to hear how far the server is.
    echo: String,
}

impl Log {
    pub(super) fn keep(url: &str) -> Self {
        let (address, prefix) = url.split_once("?prefix=").expect("a store of a test has a prefix");
        let client = Client::open(address).expect("the URL is one of Redis");
        let mut monitor = client.get_connection().expect("the server answers");
        monitor.send_packed_command(&redis::cmd("MONITOR").get_packed_command()).expect("it can be sent");
        assert_eq!(monitor.recv_response().expect("it is answered"), Value::Okay);
        let heard: Arc<Heard> = Arc::default();
        let keys = format!("{{{prefix}:");
        std::thread::spawn({
            let heard = Arc::downgrade(&heard);
            move || listen(&mut monitor, &keys, &heard)
        });
        Self { client, heard }
    }

    pub(super) fn read(&self) -> Told {
        let mut connection = self.client.get_connection().expect("the server answers");
        let word = JobId::new().to_string();
        redis::cmd("ECHO").arg(&word).exec(&mut connection).expect("it is answered");
        let state = self.heard.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (state, waited) = self
            .heard
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.echo != word)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "the server has told all that it did");
        state.told.clone()
    }
}

/// Listens until nobody wants to know.
fn listen(monitor: &mut redis::Connection, keys: &str, heard: &Weak<Heard>) {
    while let Ok(Value::SimpleString(line)) = monitor.recv_response() {
        let Some(heard) = heard.upgrade() else { return };
        let mut state = heard.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.take(&line, keys);
        heard.changed.notify_all();
    }
}

impl State {
    /// Takes in a line: `1700000000.123456 [0 lua] "HSET" "{prefix:queue}:runs" "…" "…"`.
    fn take(&mut self, line: &str, keys: &str) {
        self.lines += 1;
        let Some((head, words)) = line.split_once("] ") else { return };
        let is = |command: &str| words.starts_with(command);
        if !is("\"HSET\"") && !is("\"ECHO\"") {
            return;
        }
        let mut words = read_words(words).into_iter().skip(1);
        let key =
            String::from_utf8(words.next().unwrap_or_default()).expect("keys and words of tests are ASCII");
        if is("\"ECHO\"") {
            self.echo = key;
            return;
        }
        let kind = key.strip_prefix(keys).and_then(|key| key.split_once("}:")).map(|(_, kind)| kind);
        if !matches!(kind, Some("bodies" | "runs")) {
            return;
        }
        while let (Some(id), Some(text)) = (words.next(), words.next()) {
            let id = <[u8; 16]>::try_from(id).expect("a job's id has 16 bytes");
            self.write(JobId::from_bytes(id), &text, kind == Some("bodies"), millis(head));
        }
    }

    /// A body or a run is written, as `lua/lib/jobs.lua` says.
    fn write(&mut self, job: JobId, text: &[u8], is_body: bool, at: i64) {
        let number =
            |from: usize, to: usize| text[from..to].iter().fold(0, |all, &byte| all << 8 | i64::from(byte));
        let task_at = if is_body { 0 } else { 64 };
        let task = text[task_at + 1..][..usize::from(text[task_at])].to_vec();
        let (after, run, started) =
            if is_body { (PENDING, 0, 0) } else { (i64::from(text[0]), number(4, 8), number(36, 42)) };
        let before = self.states.insert(job, after);
        if before == Some(after) {
            return;
        }
        self.told.take(&Move {
            seq: self.lines,
            job,
            task: String::from_utf8(task).expect("names are ASCII"),
            run: u32::try_from(run).expect("it has four bytes"),
            before,
            after,
            at: if after == RUNNING { started } else { at },
        });
    }
}

/// The moment of a line.
fn millis(line: &str) -> i64 {
    let (seconds, rest) = line.split_once('.').expect("a line begins with its moment");
    let number = |text: &str| text.parse::<i64>().expect("a moment is a number");
    number(seconds) * 1_000 + number(&rest[..3])
}

/// The words of a line, each in quotes and with its other bytes escaped.
fn read_words(line: &str) -> Vec<Vec<u8>> {
    let (mut words, mut word) = (Vec::new(), None);
    let mut bytes = line.bytes();
    while let Some(byte) = bytes.next() {
        match (&mut word, byte) {
            (None, b'"') => word = Some(Vec::new()),
            (None, _) => {}
            (Some(_), b'"') => words.extend(word.take()),
            (Some(word), b'\\') => word.push(unescape(&mut bytes)),
            (Some(word), _) => word.push(byte),
        }
    }
    words
}

/// The byte that is meant by what follows a backslash.
fn unescape(rest: &mut impl Iterator<Item = u8>) -> u8 {
    let digit =
        |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16)).expect("a digit") as u8;
    match rest.next().expect("no line ends in a backslash") {
        b'x' => digit(rest.next()) << 4 | digit(rest.next()),
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_word_is_read_as_it_was_meant() {
        let line = r#""HSET" "a\x00\xff\n\r\t\a\b\\\" " "z""#;
        let expected: [&[u8]; 3] = [b"HSET", b"a\0\xff\n\r\t\x07\x08\\\" ", b"z"];
        assert_eq!(read_words(line), expected);
    }
}
