//! A limited backlog, seen from the workers that it waits for: it takes none of their slots, and costs them nothing.
//!
//! The clock stands still, so that what starts has been started by an event.

use std::sync::Arc;

use flexiq::{JobHandle, Queue, State};
use flexiq_tests::{Journal, Spy, Verb, soon};
use tokio::sync::Semaphore;

use super::queue;

/// Lets so many jobs end.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Gate {
    fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

#[flexiq::task(queue = "crowd", max_concurrent = 8, max_retries = 0)]
async fn limited(#[state] gate: Gate, #[state] journal: Journal) {
    journal.note("limited");
    gate.0.acquire().await.expect("never closed").forget();
}

#[flexiq::task(queue = "crowd", partition_by = key, max_concurrent_per_partition = 1)]
async fn keyed(key: u32, #[state] gate: Gate, #[state] journal: Journal) {
    journal.note(format!("key {key}"));
    if key == 1 {
        gate.0.acquire().await.expect("never closed").forget();
    }
}

#[flexiq::task(queue = "crowd")]
async fn free() {}

async fn worker(queue: &Queue, slots: u32, gate: &Gate, journal: &Journal) -> flexiq::Worker {
    let tasks = [task_limited(), task_keyed(), task_free()];
    let builder = queue.worker().tasks(tasks).async_concurrency(slots);
    builder.state(gate.clone()).state(journal.clone()).start().await.expect("it starts")
}

async fn enqueue_limited_jobs(queue: &Queue, jobs: usize) -> Vec<JobHandle<()>> {
    queue.enqueue_many((0..jobs).map(|_| enqueue_limited(queue))).await.expect("stored")
}

// https://github.com/ixti/sidekiq-throttled/issues/131: on 2 processes of 10 threads one free job waited for a thousand.
#[tokio::test]
async fn a_free_job_behind_a_thousand_capped_ones_starts_at_once_on_two_workers() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate::closed(), Journal::default());
    enqueue_limited_jobs(&queue, 1_000).await;
    let workers = [worker(&queue, 10, &gate, &journal).await, worker(&queue, 10, &gate, &journal).await];
    journal.wait_for("limited", 8).await;
    for _ in 0..3 {
        let job = enqueue_free(&queue).await.expect("stored");
        soon("a free job", job.result()).await.expect("it succeeded");
    }
    assert_eq!(journal.count("limited"), 8);
    gate.0.add_permits(1_000);
    for worker in workers {
        worker.shutdown().await.expect("it stops");
    }
}

// https://github.com/ixti/sidekiq-throttled/issues/94: a job of a second key waited for the first one's hundred.
#[tokio::test]
async fn a_job_of_a_free_key_behind_a_hundred_of_a_full_one_starts_at_once() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate::closed(), Journal::default());
    queue.enqueue_many((0..100).map(|_| enqueue_keyed(&queue, 1))).await.expect("stored");
    let worker = worker(&queue, 25, &gate, &journal).await;
    journal.wait_for("key 1", 1).await;
    let job = enqueue_keyed(&queue, 2).await.expect("stored");
    soon("a job of another key", job.result()).await.expect("it succeeded");
    assert_eq!(journal.count("key 1"), 1);
    gate.0.add_permits(100);
    worker.shutdown().await.expect("it stops");
}

// https://github.com/Bogdanp/dramatiq/issues/257: a job was dropped unrun, its limit being busy as often as it had tries.
#[tokio::test]
async fn a_job_without_retries_outlasts_any_number_of_looks_at_its_full_cap_and_runs_once() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate::closed(), Journal::default());
    enqueue_limited_jobs(&queue, 8).await;
    let worker = worker(&queue, 10, &gate, &journal).await;
    journal.wait_for("limited", 8).await;
    let waiting = enqueue_limited_jobs(&queue, 1).await.remove(0);
    for _ in 0..20 {
        // Each of them ends with a claim that finds the cap full.
        let other = enqueue_free(&queue).await.expect("stored");
        soon("a free job", other.result()).await.expect("it succeeded");
    }
    let status = waiting.status().await.expect("it is stored");
    assert_eq!((status.state, status.runs, status.deferrals), (State::Ready, 0, 0));
    gate.0.add_permits(9);
    soon("it runs", waiting.result()).await.expect("it succeeded");
    let status = waiting.status().await.expect("it is kept");
    assert_eq!((status.runs, status.failures, status.deferrals), (1, 0, 0));
    worker.shutdown().await.expect("it stops");
}

// https://github.com/bensheldon/good_job/issues/838: every job in excess was fetched, refused and rewritten, again and
// again.
#[tokio::test]
async fn what_a_finished_job_asks_of_its_store_does_not_depend_on_the_backlog() {
    const JOBS: usize = 40;
    for backlog in [2 * JOBS, 5_000] {
        let (queue, _clock) = queue().await;
        let spy = Spy::on(queue.below());
        let queue = Queue::on(spy.clone());
        let (gate, journal) = (Gate::closed(), Journal::default());
        enqueue_limited_jobs(&queue, backlog).await;
        let worker = worker(&queue, 10, &gate, &journal).await;
        journal.wait_for("limited", 8).await;
        let before = spy.calls(Verb::Turn);
        for done in 1..=JOBS {
            gate.0.add_permits(1);
            journal.wait_for("limited", 8 + done).await;
        }
        let turns = spy.calls(Verb::Turn) - before;
        assert!((JOBS..=JOBS + 2).contains(&turns), "{turns} turns behind {backlog} jobs");
        gate.0.add_permits(backlog);
        worker.shutdown().await.expect("it stops");
    }
}
