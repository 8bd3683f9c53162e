//! Workers on one store, killed again and again in the middle of their jobs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use flexiq::{Error, JobId, Queue, TaskCounts};
use flexiq_tests::ledger::check::{self, Span};
use flexiq_tests::ledger::{History, Line, Pen};
use serde_json::json;

use super::dose::{chance, dose};
use super::place::Place;
use super::process::Process;
use super::store_log::{StoreLog, Told};

const WORKERS: usize = 3;
const SLOTS: usize = 8;
const KILLS: usize = 40;
const KILLS_TO_A_CHECK: usize = 10;
/// What the crew's workers say to the store.
const LEASE_MS: i64 = 2_000;
/// A lease is taken back so long after its end at the latest, on a machine that does much else beside.
const MARGIN_MS: i64 = 8_000;
const CAP: usize = 3;
const RATE: (usize, i64) = (40, 1_000);
/// The tasks, and how many jobs of each wait at any time.
const BACKLOG: [(&str, u64); 4] = [("short", 60), ("plain", 20), ("capped", 30), ("rated", 30)];

// https://github.com/triggerdotdev/trigger.dev/pull/2907: what was requeued after a crash kept its slot for ever.
// https://github.com/rafidahmed870/queue-jobs-worker/issues/15: two processes saw one empty window, and both started.
#[test]
fn no_kill_loses_a_job_or_finishes_one_twice_or_breaks_a_limit() {
    let place = Place::new();
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let log = StoreLog::keep(&place.url());
    let mut chance = chance("kill loop");
    let mut crew = Crew::new(&place);
    let mut feeder = Feeder::new(&queue, &place);

    let (mut hits, mut kills, wanted) = (0, 0, KILLS * dose());
    while hits < wanted {
        let nap = Instant::now() + Duration::from_millis(chance.u64(100..500));
        while Instant::now() < nap {
            feeder.feed(&mut chance);
            sleep(Duration::from_millis(20));
        }
        // Beside a fleet that runs, and that was killed in the middle of anything.
        if kills % KILLS_TO_A_CHECK == 0 {
            let found = queue.doctor().fix().blocking().expect("the store is checked");
            assert!(found.is_empty(), "the store is not sound: {found:#?}");
        }
        kills += 1;
        hits += usize::from(crew.kill_one(chance.usize(..WORKERS)) > 0);
        assert!(kills < wanted * 5, "only {hits} of {kills} kills have hit a running job");
    }
    let drained = feeder.drain();
    crew.stop();

    let history = History::read(&place.ledger()).expect("the ledgers can be read");
    let told = log.read();
    let figures = judge(&history, &told).unwrap_or_else(|violation| panic!("{violation}"));
    let counts = queue.counts().blocking().expect("the store answers");
    let succeeded: u64 = counts.iter().map(|counts| counts.succeeded).sum();
    // More than 100,000 are not kept.
    assert!(dose() > 1 || succeeded as usize == figures.ended, "{succeeded} of {}", figures.ended);
    assert!(feeder.most_running <= CAP as u64, "{} capped jobs were leased at once", feeder.most_running);
    println!("kill loop: {hits} of {kills} kills hit a running job; drained in {drained:?}; {figures:#?}");
}

/// What the ledgers showed.
#[derive(Debug)]
#[expect(dead_code, reason = "they are printed")]
struct Figures {
    stored: usize,
    ended: usize,
    runs: usize,
    bodies: usize,
    bodies_killed: usize,
    /// From the kill until the lease was taken back.
    restart_ms_median: i64,
    restart_ms_most: i64,
    /// At once, by leases and by bodies.
    capped_leases_most: usize,
    capped_bodies_most: usize,
    /// In any one second.
    rated_starts_most: usize,
    bodies_of_a_worker_most: usize,
}

fn judge(history: &History, told: &Told) -> Result<Figures, check::Violation> {
    let stored = check::nothing_lost(told.stored.iter().map(|(job, _)| *job), &told.ends)?;
    check::calls(&history.calls, told.stored.iter().map(|(job, _)| *job))?;
    let ended = check::finished_once(&told.ends, &told.leases)?;
    let runs = check::runs_grow(told.leases.iter().map(|lease| (lease.job, lease.run)))?;
    let mut bodies: Vec<_> = history.bodies.iter().collect();
    // The bodies of one job may lie in many files; a body of an older run that began late would be out of order.
    bodies.sort_by_key(|body| (body.start, body.run));
    check::runs_grow(bodies.iter().map(|body| (body.job, body.run)))?;

    let leases_of = |task: &'static str| told.leases.iter().filter(move |lease| lease.task == task);
    let capped_leases_most =
        check::cap("leases of capped", CAP, leases_of("capped").map(|lease| lease.held))?;
    let capped_bodies_most =
        check::cap("bodies of capped", CAP, history.bodies_of("capped").map(|body| body.span()))?;
    let rated_starts_most =
        check::rate("rated", RATE.0, RATE.1, leases_of("rated").map(|lease| lease.claimed_ms))?;
    let mut by_process: HashMap<&str, Vec<Span>> = HashMap::new();
    for body in &history.bodies {
        by_process.entry(&body.process).or_default().push(body.span());
    }
    let mut bodies_of_a_worker_most = 0;
    for (process, spans) in by_process {
        bodies_of_a_worker_most = bodies_of_a_worker_most.max(check::cap(process, SLOTS, spans)?);
    }
    let mut restarts = check::restarts(history.killed(), &told.leases, LEASE_MS + MARGIN_MS)?;
    restarts.sort_unstable();
    Ok(Figures {
        stored,
        ended,
        runs,
        bodies: history.bodies.len(),
        bodies_killed: restarts.len(),
        restart_ms_median: restarts.get(restarts.len() / 2).copied().unwrap_or_default(),
        restart_ms_most: restarts.last().copied().unwrap_or_default(),
        capped_leases_most,
        capped_bodies_most,
        rated_starts_most,
        bodies_of_a_worker_most,
    })
}

/// The workers' processes, each with a ledger of its own.
struct Crew<'a> {
    place: &'a Place,
    workers: Vec<(Process, PathBuf)>,
    started: usize,
}

impl<'a> Crew<'a> {
    fn new(place: &'a Place) -> Self {
        let mut crew = Self { place, workers: Vec::new(), started: 0 };
        for _ in 0..WORKERS {
            let worker = crew.start();
            crew.workers.push(worker);
        }
        crew
    }

    fn start(&mut self) -> (Process, PathBuf) {
        self.started += 1;
        let ledger = self.place.ledger().join(format!("worker-{}", self.started));
        (Process::crew("work", &self.place.url(), &ledger, &["kill-loop"]), ledger)
    }

    /// Kills one and starts another in its place. Answers how many bodies the kill has cut short.
    fn kill_one(&mut self, index: usize) -> usize {
        let next = self.start();
        let (victim, ledger) = std::mem::replace(&mut self.workers[index], next);
        victim.kill();
        Pen::open(&ledger).expect("the ledger can be opened").killed();
        History::read_file(&ledger).expect("the ledger can be read").killed().count()
    }

    fn stop(&mut self) {
        for (worker, _) in &self.workers {
            worker.signal("TERM");
        }
        for (worker, ledger) in &mut self.workers {
            let (status, _) = worker.wait();
            assert!(status.success(), "{}: {status}", ledger.display());
        }
    }
}

/// Keeps a backlog of each task.
struct Feeder<'a> {
    queue: &'a Queue,
    pen: Pen,
    /// The most capped jobs that held a lease in any look at the store.
    most_running: u64,
}

impl<'a> Feeder<'a> {
    fn new(queue: &'a Queue, place: &Place) -> Self {
        let pen = Pen::open(&place.ledger().join("feeder")).expect("the ledger can be opened");
        Self { queue, pen, most_running: 0 }
    }

    fn look(&mut self) -> Vec<TaskCounts> {
        let counts = self.queue.counts().blocking().expect("the store answers");
        let capped = counts.iter().filter(|counts| counts.task == "capped");
        self.most_running = capped.fold(self.most_running, |most, counts| most.max(counts.running));
        counts
    }

    fn feed(&mut self, chance: &mut fastrand::Rng) {
        let counts = self.look();
        let mut batch = self.queue.batch();
        let mut jobs = Vec::new();
        for (task, backlog) in BACKLOG {
            let pending = counts.iter().find(|counts| counts.task == task).map_or(0, TaskCounts::pending);
            for _ in pending..backlog {
                let job = JobId::new();
                jobs.push(job);
                let call = self.queue.enqueue_by_name(task, json!({"millis": chance.u64(10..=50)}));
                batch = batch.push(call.id(job));
            }
        }
        if jobs.is_empty() {
            return;
        }
        let call = self.pen.intend(&jobs);
        match batch.send().blocking() {
            Ok(_) => self.pen.write(&Line::Stored { call }),
            // The tasks are not linked here: they are known when a worker has declared them.
            Err(Error::Unknown { .. }) => self.pen.write(&Line::Refused { call }),
            Err(error) => panic!("the store stores it: {error}"),
        }
    }

    /// Waits until nothing is pending or running.
    fn drain(&mut self) -> Duration {
        let begun = Instant::now();
        while self.look().iter().any(|counts| counts.pending() + counts.running > 0) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is drained: {:?}", self.look());
            sleep(Duration::from_millis(10));
        }
        begun.elapsed()
    }
}
