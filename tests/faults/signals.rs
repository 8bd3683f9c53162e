//! Signals to a worker's process, and what becomes of its jobs.

use std::time::{Duration, Instant};

use flexiq::{DeadReason, JobHandle, Queue, State};
use serde_json::{Value, json};

use super::place::Place;
use super::process::Process;

const LEASE: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(2);

/// A worker that has told its tasks to the store, and a queue beside it.
fn first_worker(place: &Place) -> (Process, Queue) {
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let process = Process::start(&place.url(), LEASE, GRACE);
    // The tasks are not linked here: they are known when the worker has declared them.
    let begun = Instant::now();
    while call(&queue, "quick").is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the worker declares its tasks");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(process.line().starts_with("quick "));
    (process, queue)
}

fn call(queue: &Queue, task: &str) -> flexiq::Result<JobHandle<Value>> {
    queue.enqueue_by_name(task, json!({})).blocking()
}

fn state(job: &JobHandle<Value>) -> flexiq::Job {
    job.status().blocking().expect("it is there")
}

#[test]
fn a_plain_function_asleep_holds_neither_its_process_nor_its_job() {
    let place = Place::new();
    let (mut first, queue) = first_worker(&place);
    let job = call(&queue, "sleeper").expect("stored");
    assert_eq!(first.line(), format!("sleeper {} 1", job.id()));
    first.signal("TERM");
    let (status, after) = first.wait();
    assert!(status.success() && after < Duration::from_secs(4), "{status} after {after:?}");
    assert!(after >= GRACE, "it had its grace: {after:?}");

    let gone = Instant::now();
    let second = Process::start(&place.url(), LEASE, GRACE);
    assert_eq!(second.line(), format!("sleeper {} 2", job.id()));
    assert!(
        gone.elapsed() < LEASE + Duration::from_millis(500),
        "it starts elsewhere after {:?}",
        gone.elapsed()
    );
    let status = state(&job);
    assert_eq!((status.failures, status.deferrals, status.losses), (0, 0, 0));
}

#[test]
fn a_stopped_workers_async_jobs_start_elsewhere_at_once() {
    let place = Place::new();
    let (mut first, queue) = first_worker(&place);
    let job = call(&queue, "stuck").expect("stored");
    assert_eq!(first.line(), format!("stuck {} 1", job.id()));
    let second = Process::start(&place.url(), LEASE, GRACE);
    first.signal("TERM");
    let (status, _) = first.wait();
    assert!(status.success());
    let released = Instant::now();
    assert_eq!(second.line(), format!("stuck {} 2", job.id()));
    assert!(released.elapsed() < LEASE / 2, "not by the end of a lease: {:?}", released.elapsed());
    let status = state(&job);
    assert_eq!((status.failures, status.deferrals, status.losses), (0, 0, 0));
}

#[test]
fn a_second_signal_ends_the_grace_at_once() {
    let place = Place::new();
    let queue = Queue::open(place.url()).blocking().expect("it opens");
    let (first, _) = first_worker(&place);
    drop(first);
    let mut patient = Process::start(&place.url(), LEASE, Duration::from_secs(600));
    let job = call(&queue, "stuck").expect("stored");
    assert_eq!(patient.line(), format!("stuck {} 1", job.id()));
    patient.signal("TERM");
    patient.signal("INT");
    let (status, after) = patient.wait();
    assert!(status.success() && after < Duration::from_secs(4), "{status} after {after:?}");
    let status = state(&job);
    assert_eq!((status.state, status.failures, status.losses), (State::Ready, 0, 0));
}

#[test]
fn a_killed_workers_job_starts_elsewhere_within_a_lease_and_counts_a_loss() {
    let place = Place::new();
    let (first, queue) = first_worker(&place);
    let job = call(&queue, "stuck").expect("stored");
    assert_eq!(first.line(), format!("stuck {} 1", job.id()));
    let second = Process::start(&place.url(), LEASE, GRACE);
    first.signal("KILL");
    let killed = Instant::now();
    assert_eq!(second.line(), format!("stuck {} 2", job.id()));
    assert!(killed.elapsed() < LEASE + Duration::from_millis(500), "after {:?}", killed.elapsed());
    let status = state(&job);
    assert_eq!((status.failures, status.deferrals, status.losses), (0, 0, 1));
}

#[test]
fn a_job_that_kills_its_workers_is_dead_past_its_budget_of_losses() {
    let place = Place::new();
    let (first, queue) = first_worker(&place);
    let job = call(&queue, "poison").expect("stored");
    assert_eq!(first.line(), format!("poison {} 1", job.id()));
    let second = Process::start(&place.url(), LEASE, GRACE);
    assert_eq!(second.line(), format!("poison {} 2", job.id()));
    let third = Process::start(&place.url(), LEASE, GRACE);
    let error = job.result_within(LEASE * 5).blocking().expect_err("it is dead");
    assert!(matches!(error, flexiq::Error::JobFailed(_)), "{error}");
    let status = state(&job);
    assert_eq!((status.state, status.losses, status.failures), (State::Dead(DeadReason::Losses), 2, 0));
    call(&queue, "quick").expect("stored");
    assert!(third.line().starts_with("quick "), "the third worker lives");
}
