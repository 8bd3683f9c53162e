//! A fleet of worker processes that run one task, of which one is killed while it runs a job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use flexiq::{JobId, Queue};
use flexiq_tests::ledger::{Fate, History, Pen};
use serde_json::json;

use super::place::Place;
use super::process::Process;

/// Worker processes, by their ledgers.
pub(crate) struct Fleet(BTreeMap<PathBuf, Process>);

impl Fleet {
    /// Starts so many workers of a queue.
    pub(crate) fn start(place: &Place, queue: &str, workers: usize) -> Self {
        let ledgers = (0..workers).map(|number| place.ledger().join(format!("worker-{number}")));
        let start =
            |ledger: PathBuf| (ledger.clone(), Process::crew("work", &place.url(), &ledger, &[queue]));
        Self(ledgers.map(start).collect())
    }

    /// Kills a worker while it runs a job.
    pub(crate) fn kill_a_holder(&mut self) {
        while !self.kill_one() {}
    }

    /// False if the job was quicker.
    fn kill_one(&mut self) -> bool {
        let begun = Instant::now();
        let holder = loop {
            assert!(begun.elapsed() < Duration::from_secs(30), "jobs run");
            if let Some(ledger) = self.0.keys().find(|ledger| is_holding(ledger)) {
                break ledger.clone();
            }
            thread::sleep(Duration::from_millis(5));
        };
        self.0.remove(&holder).expect("it is one of them").kill();
        Pen::open(&holder).expect("the ledger can be opened").killed();
        History::read_file(&holder).expect("the ledger can be read").killed().count() > 0
    }

    /// Stops all that live.
    pub(crate) fn stop(mut self) {
        for worker in self.0.values_mut() {
            worker.signal("TERM");
            worker.wait();
        }
    }
}

/// Whether a worker has run a job and runs another.
fn is_holding(ledger: &Path) -> bool {
    let bodies = History::read_file(ledger).unwrap_or_default().bodies;
    let open = bodies.iter().filter(|body| body.fate == Fate::Open).count();
    open > 0 && open < bodies.len()
}

/// Enqueues jobs of a task that runs for `millis`. It is not linked here: it is known when a worker has declared it.
pub(crate) fn enqueue(queue: &Queue, task: &str, millis: u64, jobs: usize) {
    let begun = Instant::now();
    let call = || queue.enqueue_by_name(task, json!({"millis": millis})).id(JobId::new());
    while queue.enqueue_many((0..jobs).map(|_| call())).blocking().is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the workers declare their tasks");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until nothing is pending or running, for half a minute longer than the jobs may take.
pub(crate) fn drain(queue: &Queue, jobs_take: Duration) {
    let begun = Instant::now();
    let is_busy = || {
        let counts = queue.counts().blocking().expect("the store answers");
        counts.iter().any(|counts| counts.pending() + counts.running > 0)
    };
    while is_busy() {
        assert!(begun.elapsed() < jobs_take + Duration::from_secs(30), "it is drained");
        thread::sleep(Duration::from_millis(20));
    }
}
