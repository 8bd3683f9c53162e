//! How much runs at once on one worker.

use flexiq_tests::{Journal, queue, soon};
use tokio::sync::Semaphore;

use std::sync::Arc;

/// Opened by the test, one permit for each run that may end.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Gate {
    fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    async fn pass(&self) {
        self.0.acquire().await.expect("the gate is never closed for good").forget();
    }
}

#[flexiq::task(max_in_flight_per_task = 3)]
async fn report(#[state] gate: Gate, #[state] journal: Journal) {
    journal.note("report");
    gate.pass().await;
}

#[flexiq::task]
async fn email(#[state] journal: Journal) {
    journal.note("email");
}

#[flexiq::task]
async fn busy(#[state] gate: Gate, #[state] journal: Journal) {
    journal.note("busy");
    gate.pass().await;
}

#[flexiq::task]
fn busy_plainly(#[state] gate: Gate, #[state] journal: Journal, #[context] context: flexiq::Context) {
    journal.note("busy plainly");
    context.block_on(gate.pass());
}

#[tokio::test]
async fn a_task_takes_no_more_than_its_share_and_leaves_the_rest_to_others() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate::closed(), Journal::default());
    queue.enqueue_many((0..30).map(|_| enqueue_report(&queue))).await.expect("stored");
    let worker = queue
        .worker()
        .tasks([task_report(), task_email()])
        .async_concurrency(10)
        .state(gate.clone())
        .state(journal.clone())
        .start()
        .await
        .expect("it starts");
    journal.wait_for("report", 3).await;
    let emails = queue.enqueue_many((0..20).map(|_| enqueue_email(&queue))).await.expect("stored");
    for email in &emails {
        soon("an email behind thirty reports", email.result()).await.expect("it is sent");
    }
    assert_eq!(journal.count("report"), 3, "the share holds while there is room for ten");
    gate.0.add_permits(30);
    journal.wait_for("report", 30).await;
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_freed_share_is_filled_at_once() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate::closed(), Journal::default());
    queue.enqueue_many((0..5).map(|_| enqueue_report(&queue))).await.expect("stored");
    let builder = queue.worker().tasks([task_report()]).state(gate.clone()).state(journal.clone());
    let worker = builder.start().await.expect("it starts");
    journal.wait_for("report", 3).await;
    gate.0.add_permits(1);
    journal.wait_for("report", 4).await;
    gate.0.add_permits(4);
    journal.wait_for("report", 5).await;
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn async_and_plain_tasks_fill_slots_of_their_own() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate::closed(), Journal::default());
    queue.enqueue_many((0..6).map(|_| enqueue_busy(&queue))).await.expect("stored");
    queue.enqueue_many((0..6).map(|_| enqueue_busy_plainly(&queue))).await.expect("stored");
    let worker = queue
        .worker()
        .tasks([task_busy(), task_busy_plainly()])
        .async_concurrency(4)
        .workers(2)
        .state(gate.clone())
        .state(journal.clone())
        .start()
        .await
        .expect("it starts");
    journal.wait_for("busy", 4).await;
    journal.wait_for("busy plainly", 2).await;
    let counts = queue.counts().await.expect("counted");
    assert_eq!(counts.iter().map(|task| task.running).collect::<Vec<_>>(), [4, 2]);
    gate.0.add_permits(12);
    journal.wait_for("busy", 6).await;
    journal.wait_for("busy plainly", 6).await;
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn two_workers_have_a_share_each() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate::closed(), Journal::default());
    queue.enqueue_many((0..10).map(|_| enqueue_report(&queue))).await.expect("stored");
    let builder = queue.worker().tasks([task_report()]).state(gate.clone()).state(journal.clone());
    let first = builder.clone().start().await.expect("it starts");
    let second = builder.start().await.expect("it starts");
    journal.wait_for("report", 6).await;
    let counts = queue.counts().await.expect("counted");
    assert_eq!((counts[0].running, counts[0].ready), (6, 4));
    gate.0.add_permits(10);
    journal.wait_for("report", 10).await;
    first.shutdown().await.expect("it stops");
    second.shutdown().await.expect("it stops");
}
