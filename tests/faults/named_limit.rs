//! A named limit on a fleet of processes: never passed, and a killed holder's permit is free within one lease.

use std::time::Duration;

use flexiq::Queue;
use flexiq_tests::ledger::History;
use flexiq_tests::ledger::check;

use super::dose::dose;
use super::fleet::{self, Fleet};
use super::place::Place;

const WORKERS: usize = 4;
const PERMITS: usize = 2;
const BODY_MS: u64 = 200;
const JOBS: usize = 40;
/// What the crew's workers say to the store.
const LEASE_MS: i64 = 2_000;
/// Another job runs with a killed one's permit after a lease and this at the latest.
const MARGIN_MS: i64 = 500;

#[test]
fn a_named_limit_is_never_passed_and_the_permit_of_a_killed_holder_is_free_within_one_lease() {
    let place = Place::new();
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let mut fleet = Fleet::start(&place, "partner", WORKERS);
    fleet::enqueue(&queue, "shared", BODY_MS, JOBS * dose());
    fleet.kill_a_holder();
    fleet::drain(&queue, Duration::from_millis(BODY_MS) * (JOBS * dose()) as u32);
    fleet.stop();

    let history = History::read(&place.ledger()).expect("the ledgers can be read");
    let spans = || history.bodies_of("shared").map(|body| body.span());
    check::cap("permits", PERMITS, spans()).unwrap_or_else(|violation| panic!("{violation}"));
    let killed_at = history.killed().next().expect("the killed process was running a job").span().to;
    // Two at once again, neither of which is the killed one.
    let both = spans()
        .filter(|span| span.from > killed_at)
        .filter(|span| spans().any(|other| other.from < span.from && other.to > span.from))
        .map(|span| span.from)
        .min();
    let after = both.expect("the permit is used again") - killed_at;
    println!("named limit: the permit of a killed holder was used again after {after} ms");
    assert!(after <= LEASE_MS + MARGIN_MS, "its permit was used after {after} ms");
    let counts = queue.counts().blocking().expect("it answers");
    let succeeded: u64 = counts.iter().map(|counts| counts.succeeded).sum();
    assert_eq!(succeeded, (JOBS * dose()) as u64);
}
