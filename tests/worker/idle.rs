//! Who is started by what, and when a worker has nothing left to do.

use std::sync::Arc;
use std::time::Duration;

use flexiq::{Queue, State};
use flexiq_tests::{Journal, Spy, Verb, soon};
use tokio::sync::Semaphore;

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

/// Runs until the test lets it go.
#[flexiq::task]
async fn held(#[state] journal: Journal, #[state] gate: Gate) {
    journal.note("held");
    gate.0.acquire().await.expect("never closed for good").forget();
}

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

#[tokio::test]
async fn a_burst_reaches_every_worker_that_sleeps() {
    const WORKERS: usize = 10;
    let (queue, _clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    let gate = Gate(Arc::new(Semaphore::new(0)));
    let builder = queue.worker().tasks([task_held()]).async_concurrency(100).state(gate.clone());
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let journal = Journal::default();
        workers.push((builder.clone().state(journal.clone()).start().await.expect("it starts"), journal));
    }
    spy.wait_for(Verb::Wait, WORKERS).await;
    let jobs = queue.enqueue_many((0..100).map(|_| enqueue_held(&queue))).await.expect("stored");
    let runs = async {
        loop {
            let runs: Vec<usize> = workers.iter().map(|(_, journal)| journal.count("held")).collect();
            if runs.iter().sum::<usize>() == jobs.len() {
                return runs;
            }
            tokio::task::yield_now().await;
        }
    };
    let runs = soon("all run at once, for there is room", runs).await;
    // Who comes back for more has had its share; one that claims before it waits again may take what is left.
    assert!(runs.iter().all(|&runs| runs >= 5), "{runs:?}");
    gate.0.add_permits(jobs.len());
    for (worker, _) in workers {
        worker.shutdown().await.expect("it stops");
    }
}
