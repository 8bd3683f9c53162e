//! A Redis of the tests' own: on a free port and a socket, in a folder of its own, gone with the test process.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use flexiq::JobId;
use tempfile::TempDir;

/// The URL of a store that no other test uses: on the server of this process, or on that of `FLEXIQ_TEST_REDIS_URL`.
pub fn url() -> String {
    let url = match std::env::var("FLEXIQ_TEST_REDIS_URL") {
        Ok(url) => url,
        Err(_) => SERVER.url(),
    };
    format!("{url}?prefix=test-{}", JobId::new())
}

/// The server of this process. A static is never dropped: the watcher stops the server and deletes its folder.
static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

/// A running server.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    port: u16,
    settings: Vec<String>,
    process: Child,
    watcher: Child,
}

impl Server {
    /// Starts a server that saves nothing.
    ///
    /// # Panics
    ///
    /// Where no `redis-server` is installed.
    pub fn start() -> Self {
        Self::with(&["--appendonly", "no"])
    }

    /// Starts a server with these settings, as its command line takes them.
    ///
    /// # Panics
    ///
    /// Where no `redis-server` is installed.
    pub fn with(settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let process = launch(&folder, port, &settings);
        // A test process has no last word of its own: a shell waits for the end of its input, which comes with the end of
        // the process, however that comes.
        let watcher = Command::new("sh")
            .args(["-c", "cat >/dev/null; kill -9 $(cat \"$0/pid\"); rm -rf \"$0\""])
            .arg(folder.path())
            .stdin(Stdio::piped())
            // They live a moment longer than the test, and must not hold its output open.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let server = Self { folder, port, settings, process, watcher };
        server.await_answer();
        server
    }

    /// Its URL over a socket.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Its URL over TCP.
    pub fn tcp_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port it listens on, at 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder in which it saves.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Kills it as a lost host would be.
    pub fn kill(&mut self) {
        self.process.kill().expect("the server runs");
        self.process.wait().expect("the server ends");
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().expect("it is our child").is_some()
    }

    /// Starts it again on its port and in its folder, and waits until it answers.
    pub fn start_again(&mut self) {
        self.process = launch(&self.folder, self.port, &self.settings);
        self.await_answer();
    }

    /// Sends one command, in one line; answers the beginning of what it says.
    ///
    /// # Panics
    ///
    /// Where nobody listens.
    pub fn tell(&self, command: &str) -> String {
        self.ask(command).expect("the server answers")
    }

    fn ask(&self, command: &str) -> std::io::Result<String> {
        let mut stream = UnixStream::connect(self.socket())?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        let mut answer = vec![0; 16_384];
        let length = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    fn await_answer(&self) {
        let begun = Instant::now();
        while !self.ask("PING").is_ok_and(|answer| !answer.is_empty() && !answer.contains("LOADING")) {
            assert!(begun.elapsed() < Duration::from_secs(10), "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // It deletes the folder, too, and is not left as a zombie.
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

fn launch(folder: &TempDir, port: u16, settings: &[String]) -> Child {
    let process = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""])
        .arg("--unixsocket")
        .arg(folder.path().join("redis.sock"))
        .arg("--dir")
        .arg(folder.path())
        .args(settings)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server starts: apt-get install redis-server, or name one in FLEXIQ_TEST_REDIS_URL");
    std::fs::write(folder.path().join("pid"), process.id().to_string()).expect("the folder can be written");
    process
}
