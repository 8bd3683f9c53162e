//! A worker's or producer's process: started, listened to, signalled, waited for.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for what must come before it fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process. Killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a worker on this store.
    pub(crate) fn start(url: &str, lease: Duration, grace: Duration) -> Self {
        let [lease, grace] = [lease, grace].map(|time| time.as_millis().to_string());
        Self::run(Command::new(env!("CARGO_BIN_EXE_faults-worker")).args([url, &lease, &grace]))
    }

    /// Starts one of the crew; see `crew.rs`.
    pub(crate) fn crew(role: &str, url: &str, ledger: &Path, more: &[&str]) -> Self {
        Self::run(Command::new(env!("CARGO_BIN_EXE_faults-crew")).args([role, url]).arg(ledger).args(more))
    }

    fn run(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let output = child.stdout.take().expect("its output is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for the next line.
    pub(crate) fn line(&self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("the worker says nothing"),
            Err(RecvTimeoutError::Disconnected) => panic!("the worker is gone"),
        }
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill is a system's tool").success());
    }

    /// Kills the process, and returns when it is dead.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }

    /// Waits until the process has ended, and says how and after how long.
    pub(crate) fn wait(&mut self) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return (status, begun.elapsed());
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("the worker does not end");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
