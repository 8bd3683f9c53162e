//! A store with a story behind it, three hours old, and the program to look at it.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flexiq::internals::{Claim, Clock, Hello, Limits, Room, Store, Timestamp, Turn};
use flexiq::{JobId, Name, Queue, Retry, WorkerId};
use tempfile::TempDir;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Sends an email; to some addresses it cannot.
#[flexiq::task(queue = "emails", max_concurrent = 2)]
async fn send_email(to: String, #[secret] token: String) -> Result<(), Retry> {
    if to.starts_with("full@") {
        return Err(Retry::never(format!(
            "the mailbox of {to} is full\n(token of {} characters)",
            token.len()
        )));
    }
    Ok(())
}

/// Builds the report of an account.
#[flexiq::task(queue = "reports", partition_by = account, rate_limit_per_partition = "100/m")]
async fn build_report(account: String, #[default] month: String) {
    drop((account, month));
}

/// A store, and where it lies.
pub(crate) struct Stage {
    pub(crate) url: String,
    _folder: Option<TempDir>,
}

/// The id of this number.
pub(crate) fn id(number: u8) -> JobId {
    let mut bytes = [0; 16];
    bytes[15] = number;
    JobId::from_bytes(bytes)
}

impl Stage {
    /// A store in a file, with its story.
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
        tell_story(&url).await;
        Self { url, _folder: Some(folder) }
    }

    /// A store on Redis, with the same story.
    pub(crate) async fn redis() -> Self {
        let url = crate::redis_server::url();
        tell_story(&url).await;
        Self { url, _folder: None }
    }

    /// Runs the program on this store.
    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        run(&[&["--url", &self.url], words].concat(), "")
    }

    /// Runs the program once for each line of words, and writes down what it says.
    pub(crate) fn transcript(&self, lines: &[&[&str]]) -> String {
        lines.iter().map(|words| self.run(words).written(words)).collect()
    }

    pub(crate) async fn queue(&self) -> Queue {
        Queue::open(&self.url).await.expect("the store opens")
    }
}

/// What a run of the program said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn written(&self, words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let mut text = format!("$ flexiq {}\n{}", words.join(" "), self.stdout);
        if !self.stderr.is_empty() {
            text += &format!("[stderr] {}", self.stderr);
        }
        match self.code {
            Some(0) => {}
            code => text += &format!("[exit code {}]\n", code.map_or("none".into(), |code| code.to_string())),
        }
        text + "\n"
    }
}

fn quoted(word: &str) -> String {
    if word.contains([' ', '"']) { format!("'{word}'") } else { word.to_owned() }
}

/// The program, with nothing of this process's environment that would change it.
pub(crate) fn program(words: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_flexiq"));
    program
        .args(words)
        .env_remove("FLEXIQ_URL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    program
}

pub(crate) fn run(words: &[&str], input: &str) -> Ran {
    use std::io::Write;

    let mut process = program(words).spawn().expect("the program starts");
    let mut stdin = process.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("the program reads");
    drop(stdin);
    let Output { status, stdout, stderr } = process.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("it writes text");
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Holds a transcript to its snapshot, without what differs from run to run.
#[track_caller]
pub(crate) fn assert_told(name: &str, told: String) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"sqlite://\S*/\.tmp\w+/jobs\.db", "sqlite://[folder]/jobs.db");
    settings.add_filter(r"since \d+h\w*", "since [time]");
    settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "[new id]");
    settings.add_filter(r#"("[a-z_]+_ms": )\d+"#, "$1[ms]");
    settings.add_filter(r#"(--after |"next": ")[0-9a-f]+"#, "$1[cursor]");
    settings.bind(|| insta::assert_snapshot!(name, told));
}

/// What has happened in the store three hours ago: an email was sent and one could not be, one is being sent, and more wait.
async fn tell_story(url: &str) {
    let then = SystemTime::now() - 3 * HOUR - Duration::from_secs(60);
    let (clock, _hands) = Clock::manual(Timestamp::from(then));
    let queue = Queue::builder(url).clock(clock).open().await.expect("a store of its own opens");
    let email = |to: &str, number: u8| enqueue_send_email(&queue, to.into(), "sesame".into()).id(id(number));
    email("ada@example.org", 1).await.expect("it is stored");
    email("full@example.org", 2).await.expect("it is stored");
    queue.worker().run_until_idle().await.expect("the worker runs");

    email("grace@example.org", 3).await.expect("it is stored");
    start_one(queue.below(), "emails", "send_email").await;
    email("edith@example.org", 4).await.expect("it is stored");
    email("late@example.org", 5).delay(24 * HOUR).priority(7).await.expect("it is stored");
    email("never@example.org", 6).await.expect("it is stored");
    queue.cancel(id(6)).await.expect("it is there");
    for (number, account) in [(7, "acme"), (8, "zeta")] {
        enqueue_build_report(&queue, account.into(), "2026-10".into())
            .id(id(number))
            .await
            .expect("it is stored");
    }
    queue.set_task_concurrency("send_email", 1).await.expect("it is known");
    queue.pause_queue("reports").await.expect("it is known");
}

/// Starts a job that nobody ends.
async fn start_one(store: Arc<dyn Store>, queue: &'static str, task: &'static str) {
    let (queue, task) = (Name::from_static(queue), Name::from_static(task));
    let worker = WorkerId::from_bytes([9; 16]);
    let hello = Hello {
        worker,
        label: "mailer-1:4711".into(),
        lease: 24 * HOUR,
        queues: vec![(queue.clone(), Limits::default())],
        tasks: Vec::new(),
    };
    store.register(hello).await.expect("the store answers");
    let room = Room { task, slot: 0, at_most: 1, max_losses: 3 };
    let claim = Claim { slots: vec![1], tasks: vec![room], lease: 24 * HOUR };
    let turn = Turn { worker, queue, number: 1, finishes: Vec::new(), claim: Some(claim) };
    assert_eq!(store.turn(Arc::new(turn)).await.expect("the store answers").claimed.len(), 1);
}
