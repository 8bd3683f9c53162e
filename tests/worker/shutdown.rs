//! Stopping a worker, with quick, slow and stuck jobs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flexiq::internals::ManualClock;
use flexiq::{Context, Queue, State, Worker};
use flexiq_tests::{Journal, soon, until};
use tokio::sync::Notify;

use super::queue;

const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone, Default)]
struct Gate(Arc<Notify>);

#[flexiq::task]
async fn slow(#[state] gate: Gate, #[state] journal: Journal) {
    journal.note("slow");
    gate.0.notified().await;
}

#[flexiq::task]
async fn stuck(#[state] journal: Journal) {
    journal.note("stuck");
    std::future::pending::<()>().await;
}

#[flexiq::task]
async fn interrupted(#[state] journal: Journal, #[context] context: Context) -> Result<(), String> {
    journal.note("interrupted");
    context.cancelled().await;
    Err("the worker told me to stop".into())
}

/// Cannot be stopped from outside.
#[derive(Clone, Default)]
struct Release(Arc<AtomicBool>);

#[flexiq::task]
fn stubborn(#[state] journal: Journal, #[state] release: Release) {
    journal.note("stubborn");
    while !release.0.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    journal.note("stubborn returned");
}

async fn start(queue: &Queue, journal: &Journal, gate: &Gate) -> Worker {
    queue
        .worker()
        .tasks([task_slow(), task_stuck(), task_interrupted()])
        .grace(GRACE)
        .state(journal.clone())
        .state(gate.clone())
        .start()
        .await
        .expect("it starts")
}

/// Shuts a worker down while the clock runs.
async fn stop(worker: Worker, clock: &ManualClock) {
    let stopping = worker.shutdown();
    tokio::pin!(stopping);
    let stopped = async {
        loop {
            tokio::select! {
                biased;
                stopped = &mut stopping => return stopped,
                () = tokio::task::yield_now() => clock.advance(Duration::from_millis(20)),
            }
        }
    };
    soon("the worker stops", stopped).await.expect("it stops");
}

#[tokio::test]
async fn a_run_that_ends_within_the_grace_ends_as_it_would() {
    let (queue, _clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate::default());
    let worker = start(&queue, &journal, &gate).await;
    let job = enqueue_slow(&queue).await.expect("stored");
    journal.wait_for("slow", 1).await;
    let stopping = tokio::spawn(worker.shutdown());
    gate.0.notify_one();
    soon("it stops without the clock having moved", stopping).await.expect("no panic").expect("it stops");
    assert_eq!(job.status().await.expect("it is kept").state, State::Succeeded);
}

#[tokio::test]
async fn what_outlives_the_grace_is_released_twice_over_with_no_counter_moved() {
    let (queue, clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate::default());
    let jobs = [
        enqueue_stuck(&queue).await.expect("stored").id(),
        enqueue_interrupted(&queue).await.expect("stored").id(),
        enqueue_slow(&queue).await.expect("stored").id(),
    ];
    let first_due = queue.status(jobs[0]).await.expect("it is there").due_at;
    for round in 1..=2 {
        let worker = start(&queue, &journal, &gate).await;
        for line in ["stuck", "interrupted", "slow"] {
            journal.wait_for(line, round).await;
        }
        stop(worker, &clock).await;
        for id in jobs {
            let job = queue.status(id).await.expect("it is there");
            assert_eq!(job.state, State::Ready, "at once, not when a lease ends");
            assert_eq!((job.failures, job.deferrals, job.losses), (0, 0, 0));
            assert_eq!(job.runs as usize, round);
        }
    }
    assert_eq!(queue.status(jobs[0]).await.expect("it is there").due_at, first_due, "at its old place");
}

#[tokio::test]
async fn a_worker_that_stops_claims_nothing_more() {
    let (queue, _clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate::default());
    let worker = start(&queue, &journal, &gate).await;
    let running = enqueue_slow(&queue).await.expect("stored");
    journal.wait_for("slow", 1).await;
    let stopping = tokio::spawn(worker.shutdown());
    // The shutdown has begun when its task was polled once.
    tokio::task::yield_now().await;
    let late = enqueue_slow(&queue).await.expect("stored");
    gate.0.notify_one();
    soon("it stops", stopping).await.expect("no panic").expect("it stops");
    assert_eq!(running.status().await.expect("it is kept").state, State::Succeeded);
    let late = late.status().await.expect("it is there");
    assert_eq!((late.state, late.runs), (State::Ready, 0));
}

#[tokio::test]
async fn a_plain_function_that_cannot_be_stopped_keeps_its_lease_while_the_process_lives() {
    let (queue, clock) = queue().await;
    let (journal, release) = (Journal::default(), Release::default());
    let worker = queue
        .worker()
        .tasks([task_stubborn()])
        .grace(GRACE)
        .state(journal.clone())
        .state(release.clone())
        .start()
        .await
        .expect("it starts");
    let job = enqueue_stubborn(&queue).await.expect("stored");
    journal.wait_for("stubborn", 1).await;
    stop(worker, &clock).await;
    assert_eq!(job.status().await.expect("it is there").state, State::Running);
    // It returns after its worker is gone, and its success still counts.
    release.0.store(true, Ordering::Relaxed);
    let status = until(&queue, job.id(), "the outcome comes home", |job| job.state.is_ended()).await;
    assert_eq!((status.state, status.runs, status.losses), (State::Succeeded, 1, 0));
    assert_eq!(journal.lines(), ["stubborn", "stubborn returned"]);
}

#[tokio::test]
async fn dropping_a_worker_begins_its_shutdown() {
    let (queue, clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate::default());
    let worker = start(&queue, &journal, &gate).await;
    let job = enqueue_stuck(&queue).await.expect("stored");
    journal.wait_for("stuck", 1).await;
    drop(worker);
    let released = async {
        while queue.status(job.id()).await.expect("it is there").state != State::Ready {
            clock.advance(Duration::from_millis(20));
            tokio::task::yield_now().await;
        }
    };
    soon("its job is released", released).await;
}

#[tokio::test]
async fn run_until_ends_with_its_future() {
    let (queue, _clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate::default());
    let job = enqueue_slow(&queue).await.expect("stored");
    let end = Arc::new(Notify::new());
    let builder = queue.worker().tasks([task_slow()]).state(journal.clone()).state(gate.clone());
    let running = tokio::spawn(builder.run_until({
        let end = end.clone();
        async move { end.notified().await }
    }));
    journal.wait_for("slow", 1).await;
    gate.0.notify_one();
    soon("the job", job.result()).await.expect("it succeeded");
    end.notify_one();
    soon("the worker ends", running).await.expect("no panic").expect("it ends");
}
