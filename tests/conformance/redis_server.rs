//! The Redis that the suite runs on: its own, in a folder of its own, gone with the test process; or that of
//! `FLEXIQ_TEST_REDIS_URL`.

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
        Err(_) => format!("unix://{}", SERVER.display()),
    };
    let mut options = RedisOptions::from_url(&url).expect("FLEXIQ_TEST_REDIS_URL is a URL of Redis");
    options.prefix = name(&format!("test-{}", JobId::new()));
    options
}

/// The socket of this process's server.
static SERVER: LazyLock<std::path::PathBuf> = LazyLock::new(start);

fn start() -> std::path::PathBuf {
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
            "redis-server starts: install it (apt-get install redis-server), or name a server in FLEXIQ_TEST_REDIS_URL",
        );
    stop_with_this_process(&server, &folder);
    let begun = Instant::now();
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "redis-server does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Whoever stops the server deletes its folder.
    std::mem::forget(folder);
    socket
}

/// A test process has no last word of its own: a shell waits for the end of its input, which comes with the process's end
/// however that comes.
fn stop_with_this_process(server: &Child, folder: &Folder) {
    let watcher = Command::new("sh")
        .args(["-c", "cat >/dev/null; kill $0; rm -rf \"$1\""])
        .arg(server.id().to_string())
        .arg(&folder.0)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh starts");
    // Its input stays open as long as this process lives.
    std::mem::forget(watcher);
}
