//! Producers that are killed while they store.

use std::thread::sleep;
use std::time::Duration;

use flexiq::{JobId, Queue};
use flexiq_tests::ledger::check;
use flexiq_tests::ledger::{Answer, History};

use super::dose::{chance, dose};
use super::place::Place;
use super::process::Process;
use super::store_log::StoreLog;

/// Kills in the middle of a call, and of these so many in a batch.
const KILLS: usize = 20;
const KILLS_IN_BATCHES: usize = 5;

#[test]
fn a_producer_that_is_killed_was_told_the_truth_and_tears_no_batch() {
    let place = Place::new();
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let log = StoreLog::keep(&place.url());
    let mut chance = chance("killed producers");
    let (mut kills, mut hits, mut in_batches) = (0, 0, 0);
    while hits < KILLS * dose() || in_batches < KILLS_IN_BATCHES * dose() {
        let ledger = place.ledger().join(format!("producer-{kills}"));
        let producer = Process::crew("store", &place.url(), &ledger, &[]);
        // Two lives at once now and then, so that one is killed beside another's transaction.
        let other = place.ledger().join(format!("producer-{kills}-other"));
        let beside = chance.bool().then(|| Process::crew("store", &place.url(), &other, &[]));
        sleep(Duration::from_millis(chance.u64(50..200)));
        for (process, ledger) in [(Some(producer), ledger), (beside, other)] {
            let Some(process) = process else { continue };
            process.kill();
            kills += 1;
            let open = open_call(&ledger);
            hits += usize::from(open > 0);
            in_batches += usize::from(open > 1);
        }
        assert!(kills < KILLS * dose() * 20, "only {hits} kills have hit a call, {in_batches} a batch");
    }

    let history = History::read(&place.ledger()).expect("the ledgers can be read");
    let told = log.read();
    let there =
        |told: &super::store_log::Told| told.stored.iter().map(|(job, _)| *job).collect::<Vec<JobId>>();
    let unknown = history.calls.iter().filter(|call| call.answer == Answer::Unknown).count();
    let unknown_there = check::calls(&history.calls, there(&told)).unwrap_or_else(|found| panic!("{found}"));

    // Sent once more by their ids, the unknown are there once too.
    let ledger = place.ledger().join("again");
    let folder = place.ledger().display().to_string();
    let (status, _) = Process::crew("again", &place.url(), &ledger, &[&folder]).wait();
    assert!(status.success(), "{status}");
    let history = History::read(&place.ledger()).expect("the ledgers can be read");
    let told = log.read();
    check::calls(&history.calls, there(&told)).unwrap_or_else(|found| panic!("{found}"));
    let all: usize =
        history.calls.iter().filter(|call| call.answer == Answer::Stored).map(|call| call.jobs.len()).sum();
    assert_eq!(all, told.stored.len(), "all that was ever sent is there");
    let counts = queue.counts().blocking().expect("the store answers");
    assert_eq!(counts.iter().map(|counts| counts.ready).sum::<u64>() as usize, all);
    println!(
        "killed producers: {hits} of {kills} kills hit a call, {in_batches} of them a batch; \
         {all} jobs stored; {unknown_there} of {unknown} unknown calls were there"
    );
}

/// The jobs of the call in whose middle the process was killed.
fn open_call(ledger: &std::path::Path) -> usize {
    if !ledger.exists() {
        return 0;
    }
    let history = History::read_file(ledger).expect("the ledger can be read");
    history.calls.last().filter(|call| call.answer == Answer::Unknown).map_or(0, |call| call.jobs.len())
}
