//! The Redis that the suite runs on: its own, in a folder of its own, gone with the test process; or that of
//! `FLEXIQ_TEST_REDIS_URL`.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use flexiq::JobId;
use flexiq::internals::redis::RedisOptions;

use crate::harness::{Folder, name};

/// How to open a store that no other test uses.
pub(crate) fn options() -> RedisOptions {
    let url = match std::env::var("FLEXIQ_TEST_REDIS_URL") {
        Ok(url) => url,
        Err(_) => SERVER.url(),
    };
    let mut options = RedisOptions::from_url(&url).expect("FLEXIQ_TEST_REDIS_URL is a URL of Redis");
    options.prefix = name(&format!("test-{}", JobId::new()));
    options
}

/// The server of this process. A static is never dropped: the watcher stops the server and deletes its folder.
static SERVER: LazyLock<Server> = LazyLock::new(Server::start);

pub(crate) struct Server {
    socket: PathBuf,
    _folder: Folder,
    _server: Child,
    _watcher: Child,
}

impl Server {
    /// Starts a server, which ends with this process.
    pub(crate) fn start() -> Self {
        let folder = Folder::new();
        let socket = folder.file("redis.sock");
        let server = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(&folder.0)
            .stdout(Stdio::null())
            .spawn()
            .expect(
                "redis-server starts: apt-get install redis-server, or name one in FLEXIQ_TEST_REDIS_URL",
            );
        // A test process has no last word of its own: a shell waits for the end of its input, which comes with the end of
        // the process, however that comes.
        let watcher = Command::new("sh")
            .args(["-c", "cat >/dev/null; kill $0; rm -rf \"$1\""])
            .arg(server.id().to_string())
            .arg(&folder.0)
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let begun = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { socket, _folder: folder, _server: server, _watcher: watcher }
    }
    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Sends one command, in one line.
    pub(crate) fn tell(&self, command: &str) {
        let mut stream = UnixStream::connect(&self.socket).expect("the server listens");
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("the command is sent");
        let answered = stream.read(&mut [0; 64]).expect("the server answers");
        assert!(answered > 0, "{command}");
    }
}
