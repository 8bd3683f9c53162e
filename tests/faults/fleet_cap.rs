//! A cap on a fleet of processes: never passed, always used, and a killed holder's share is given to another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use flexiq::Queue;
use flexiq_tests::ledger::History;
use flexiq_tests::ledger::check::{self, Lease};

use super::dose::dose;
use super::fleet::{self, Fleet};
use super::place::Place;
use super::store_log::{StoreLog, Told};

const WORKERS: usize = 10;
const CAP: usize = 5;
const BODY_MS: u64 = 200;
/// Of each dose: with the kill they take as long as a lease and two seconds more.
const JOBS: usize = 80;
/// What the crew's workers say to the store.
const LEASE_MS: i64 = 2_000;
/// Another job runs in a killed one's place after a lease and this at the latest.
const MARGIN_MS: i64 = 500;

// https://github.com/rails/solid_queue/issues/546: those behind a killed holder waited for the guard of its slot, a day.
#[test]
fn ten_processes_never_pass_a_cap_of_five_and_fill_the_place_of_a_killed_one() {
    let place = Place::new();
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let log = StoreLog::keep(&place.url());
    let mut fleet = Fleet::start(&place, "fleet", WORKERS);
    fleet::enqueue(&queue, "five", BODY_MS, JOBS * dose());

    let is_over = AtomicBool::new(false);
    let sampled = thread::scope(|scope| {
        let sampled = scope.spawn(|| sample(&queue, &is_over));
        fleet.kill_a_holder();
        fleet::drain(&queue, Duration::from_millis(BODY_MS) * (JOBS * dose()) as u32);
        is_over.store(true, Ordering::Relaxed);
        sampled.join().expect("it samples")
    });
    fleet.stop();

    let history = History::read(&place.ledger()).expect("the ledgers can be read");
    let told = log.read();
    let (leased, ran) = judge(&history, &told).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(sampled <= CAP as u64, "{sampled} were seen running");
    let killed = history.killed().next().expect("the killed process was running a job");
    let lease = told.leases.iter().find(|lease| (lease.job, lease.run) == (killed.job, killed.run));
    let killed_at = killed.span().to;
    let freed = lease.expect("it had a lease").held.to;
    let next = told.leases.iter().find(|lease| lease.held.from > freed).expect("jobs still wait");
    let after = next.claimed_ms - killed_at;
    assert!(after <= LEASE_MS + MARGIN_MS, "its place was filled after {after} ms");
    let used = used(&told.leases);
    let bodies = body_use(&history);
    println!(
        "fleet cap: at most {leased} leases and {ran} bodies at once, {sampled} as sampled; while jobs waited {:.2} % of \
         the cap were leased and {:.2} % ran; the place of a killed one was filled after {after} ms",
        used * 100.0,
        bodies * 100.0,
    );
    // How fast a freed lease is given again depends on the machine: it is judged where it is soaked.
    assert!(dose() == 1 || used >= 0.98, "{used} of the cap were leased");
}

/// The most running jobs that were seen.
fn sample(queue: &Queue, is_over: &AtomicBool) -> u64 {
    let mut most = 0;
    while !is_over.load(Ordering::Relaxed) {
        let counts = queue.counts().blocking().expect("the store answers");
        most = most.max(counts.iter().map(|counts| counts.running).sum());
        thread::sleep(Duration::from_millis(10));
    }
    most
}

/// The most leases and bodies at once.
fn judge(history: &History, told: &Told) -> Result<(usize, usize), check::Violation> {
    check::nothing_lost(told.stored.iter().map(|(job, _)| *job), &told.ends)?;
    check::finished_once(&told.ends, &told.leases)?;
    let leased = check::cap("leases", CAP, told.leases.iter().map(|lease| lease.held))?;
    let ran = check::cap("bodies", CAP, history.bodies_of("five").map(|body| body.span()))?;
    Ok((leased, ran))
}

/// The part of the cap that was leased while jobs waited: from the first claim to the last.
fn used(leases: &[Lease]) -> f64 {
    let spans = leases.iter().map(|lease| (lease.claimed_ms, lease.freed_ms.expect("all have ended")));
    share(spans.collect())
}

/// The part of the cap that ran, as the bodies tell it. A killed one ran until its kill.
fn body_use(history: &History) -> f64 {
    share(history.bodies_of("five").map(|body| (body.span().from, body.span().to)).collect())
}

fn share(spans: Vec<(i64, i64)>) -> f64 {
    let first = spans.iter().map(|span| span.0).min().expect("something ran");
    let last = spans.iter().map(|span| span.0).max().expect("something ran");
    let used: i64 = spans.iter().map(|span| span.1.min(last) - span.0).sum();
    used as f64 / ((last - first) * CAP as i64) as f64
}
