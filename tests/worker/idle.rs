//! Who is started by what, and when a worker has nothing left to do.

use std::time::Duration;

use flexiq::State;
use flexiq_tests::{Journal, soon};

use super::queue;

#[flexiq::task]
async fn known(#[state] journal: Journal) {
    journal.note("known");
}

#[flexiq::task]
async fn foreign(#[state] journal: Journal) {
    journal.note("foreign");
}

#[tokio::test]
async fn ten_thousand_jobs_that_nobody_links_hold_up_nobody_and_start_when_a_worker_links_them() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    queue.enqueue_many((0..10_000).map(|_| enqueue_foreign(&queue))).await.expect("stored");
    let worker =
        queue.worker().tasks([task_known()]).state(journal.clone()).start().await.expect("it starts");
    let job = enqueue_known(&queue).await.expect("stored");
    soon("a job behind ten thousand of another task", job.result()).await.expect("it succeeded");
    assert_eq!(journal.lines(), ["known"]);
    worker.shutdown().await.expect("it stops");

    let builder = queue.worker().tasks([task_foreign()]).state(journal.clone());
    soon("the worker that links them", builder.run_until_idle()).await.expect("it ends");
    assert_eq!(journal.count("foreign"), 10_000);
}

#[tokio::test]
async fn a_delayed_job_starts_in_time_on_a_worker_that_sleeps() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let worker =
        queue.worker().tasks([task_known()]).state(journal.clone()).start().await.expect("it starts");
    let first = enqueue_known(&queue).await.expect("stored");
    soon("the worker is up", first.result()).await.expect("it succeeded");
    let job = enqueue_known(&queue).delay(Duration::from_secs(60)).await.expect("stored");
    clock.advance(Duration::from_millis(59_999));
    // A job enqueued now is run, and the one that is due a millisecond later is not.
    let other = enqueue_known(&queue).await.expect("stored");
    soon("the worker is awake", other.result()).await.expect("it succeeded");
    assert!(matches!(job.status().await.expect("it is there").state, State::Scheduled(_)), "never early");
    clock.advance(Duration::from_millis(1));
    soon("it is due", job.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_worker_until_idle_waits_for_what_is_scheduled() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let delayed = enqueue_known(&queue).delay(Duration::from_secs(60)).await.expect("stored");
    let running = tokio::spawn(queue.worker().tasks([task_known()]).state(journal.clone()).run_until_idle());
    let first = enqueue_known(&queue).await.expect("stored");
    soon("the worker is up", first.result()).await.expect("it succeeded");
    assert!(!running.is_finished());
    clock.advance(Duration::from_secs(60));
    soon("the worker ends", running).await.expect("no panic").expect("it ends");
    assert_eq!(delayed.status().await.expect("it is kept").state, State::Succeeded);
}

#[tokio::test]
async fn a_worker_until_idle_ends_at_once_on_an_empty_store() {
    let (queue, _clock) = queue().await;
    let builder = queue.worker().tasks([task_known()]).state(Journal::default());
    soon("nothing to do", builder.run_until_idle()).await.expect("it ends");
}

#[tokio::test]
async fn many_workers_share_a_burst_and_run_each_job_once() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    let builder = queue.worker().tasks([task_known()]).async_concurrency(4).state(journal.clone());
    let mut workers = Vec::new();
    for _ in 0..5 {
        workers.push(builder.clone().start().await.expect("it starts"));
    }
    let jobs = queue.enqueue_many((0..1_000).map(|_| enqueue_known(&queue))).await.expect("stored");
    for job in &jobs {
        soon("it runs", job.result()).await.expect("it succeeded");
    }
    assert_eq!(journal.count("known"), 1_000);
    for worker in workers {
        worker.shutdown().await.expect("it stops");
    }
}
