//! A queue that takes so many and no more, pressed by many producers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use flexiq::{Queue, TaskCounts};
use flexiq_tests::ledger::check;
use flexiq_tests::ledger::{Answer, History};

use super::dose::dose;
use super::place::Place;
use super::process::Process;
use super::store_log::StoreLog;

const MAX_PENDING: usize = 1_000;
/// By each of eight threads of two processes.
const JOBS: usize = 1_500;

#[test]
fn no_producer_of_many_passes_max_pending_by_one() {
    let pressed = press("press", JOBS);
    assert!(pressed.refused > 0, "the queue was never full: {} at most", pressed.most);
}

#[test]
fn producers_of_many_processes_that_wait_all_get_in_and_pass_it_by_none() {
    let pressed = press("queue", JOBS / 3);
    assert_eq!(pressed.refused, 0, "all had time enough");
    assert!(pressed.most > MAX_PENDING / 2, "the queue was never full: {} at most", pressed.most);
}

struct Pressed {
    refused: usize,
    most: usize,
}

/// Two processes press on the queue, each with its manner, while a worker drains it.
fn press(manner: &str, jobs: usize) -> Pressed {
    let place = Place::new();
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let log = StoreLog::keep(&place.url());
    let worker = Process::crew("work", &place.url(), &place.ledger().join("worker"), &["narrow"]);
    let (pending, jobs) = (MAX_PENDING.to_string(), (jobs * dose()).to_string());
    let mut producers = ["first", "second"]
        .map(|name| Process::crew(manner, &place.url(), &place.ledger().join(name), &[&pending, &jobs]));

    let is_over = AtomicBool::new(false);
    let sampled = thread::scope(|scope| {
        let sampled = scope.spawn(|| sample(&queue, &is_over));
        for producer in &mut producers {
            let (status, _) = producer.wait();
            assert!(status.success(), "{status}");
        }
        is_over.store(true, Ordering::Relaxed);
        sampled.join().expect("it samples")
    });
    worker.kill();

    let history = History::read(&place.ledger()).expect("the ledgers can be read");
    let told = log.read();
    let refused = history.calls.iter().filter(|call| call.answer == Answer::Refused).count();
    let most = check::cap("pending", MAX_PENDING, told.pending.iter().copied())
        .and_then(|most| check::calls(&history.calls, told.stored.iter().map(|(job, _)| *job)).map(|_| most))
        .unwrap_or_else(|found| panic!("{found}"));
    assert!(sampled <= MAX_PENDING as u64, "{sampled} were seen pending");
    assert_eq!(history.stored().count(), told.stored.len());
    println!(
        "full queue, {manner}: {} calls, {refused} refused; {} jobs stored; at most {most} pending, {sampled} as sampled",
        history.calls.len(),
        told.stored.len(),
    );
    Pressed { refused, most }
}

/// The most pending jobs that were seen.
fn sample(queue: &Queue, is_over: &AtomicBool) -> u64 {
    let mut most = 0;
    while !is_over.load(Ordering::Relaxed) {
        let counts = queue.counts().blocking().expect("the store answers");
        most = most.max(counts.iter().map(TaskCounts::pending).sum());
        thread::sleep(Duration::from_millis(2));
    }
    most
}
