//! Who wakes whom. On a clock that stands still, so that no heartbeat makes up for a bell that was lost.

use std::sync::Arc;

use flexiq_tests::{Journal, soon};
use tokio::sync::Semaphore;

use super::queue;

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

#[flexiq::task(queue = "left")]
async fn left(#[state] gate: Gate, #[state] journal: Journal) {
    journal.note("left");
    gate.0.acquire().await.expect("never closed for good").forget();
}

#[flexiq::task(queue = "right")]
async fn right(#[state] gate: Gate, #[state] journal: Journal) {
    journal.note("right");
    gate.0.acquire().await.expect("never closed for good").forget();
}

#[tokio::test]
async fn a_bell_that_a_worker_has_no_room_for_wakes_another() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate(Arc::new(Semaphore::new(0))), Journal::default());
    let builder = queue.worker().async_concurrency(1).state(gate.clone()).state(journal.clone());
    // Waits for both queues, with one slot, and longer than the other worker.
    let first = builder.clone().tasks([task_left(), task_right()]).start().await.expect("it starts");
    gate.0.add_permits(1);
    let warm = enqueue_left(&queue).await.expect("stored");
    soon("the first worker is up", warm.result()).await.expect("it succeeded");
    let second = builder.clone().tasks([task_left()]).start().await.expect("it starts");
    let third = builder.tasks([task_right()]).start().await.expect("it starts");
    tokio::task::yield_now().await;

    // Both bells are rung before the first worker, on this thread, can take either.
    enqueue_left(&queue).blocking().expect("stored");
    enqueue_right(&queue).blocking().expect("stored");
    journal.wait_for("left", 2).await;
    journal.wait_for("right", 1).await;
    gate.0.add_permits(2);
    for worker in [first, second, third] {
        worker.shutdown().await.expect("it stops");
    }
}

#[flexiq::task(queue = "left")]
async fn left_name(#[state] journal: Journal) {
    journal.note("left");
}

#[flexiq::task(queue = "right")]
async fn right_name(#[state] journal: Journal) {
    journal.note("right");
}

#[tokio::test]
async fn two_backlogs_take_turns_on_one_slot() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    queue.enqueue_many((0..20).map(|_| enqueue_left_name(&queue))).await.expect("stored");
    queue.enqueue_many((0..20).map(|_| enqueue_right_name(&queue))).await.expect("stored");
    let builder = queue.worker().tasks([task_left_name(), task_right_name()]).async_concurrency(1);
    soon("all run", builder.state(journal.clone()).run_until_idle()).await.expect("it ends");
    let lefts = journal.lines()[..20].iter().filter(|line| *line == "left").count();
    assert!((5..=15).contains(&lefts), "{lefts} of the first twenty are left's");
}

#[tokio::test]
async fn a_queue_is_heard_while_the_backlog_of_another_fills_the_worker() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    queue.enqueue_many((0..3_000).map(|_| enqueue_left_name(&queue))).await.expect("stored");
    let builder = queue.worker().tasks([task_left_name(), task_right_name()]).async_concurrency(1);
    let worker = builder.state(journal.clone()).start().await.expect("it starts");
    journal.wait_for("left", 10).await;
    let job = enqueue_right_name(&queue).await.expect("stored");
    soon("a job of the other queue", job.result()).await.expect("it succeeded");
    assert!(journal.count("left") < 3_000, "it did not wait for the whole backlog");
    worker.shutdown().await.expect("it stops");
}
