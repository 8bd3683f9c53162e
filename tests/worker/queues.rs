//! Several queues on one worker: by weight, or strictly in order.

use std::sync::Arc;
use std::time::Duration;

use flexiq::Error;
use flexiq_tests::{Journal, soon};
use tokio::sync::Semaphore;

use super::queue;

#[flexiq::task(queue = "heavy")]
async fn heavy(#[state] journal: Journal, #[state] gate: Gate) {
    journal.note("heavy");
    gate.0.acquire().await.expect("never closed").forget();
}

#[flexiq::task(queue = "light")]
async fn light(#[state] journal: Journal, #[state] gate: Gate) {
    journal.note("light");
    gate.0.acquire().await.expect("never closed").forget();
}

/// Lets so many jobs end.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Gate {
    fn open_for(jobs: usize) -> Self {
        Self(Arc::new(Semaphore::new(jobs)))
    }
}

/// Runs thirty jobs of each queue, and answers their tasks in the order in which they ran.
async fn ran(set: impl FnOnce(flexiq::WorkerBuilder) -> flexiq::WorkerBuilder) -> Vec<String> {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    // The light ones are older: age is no matter between queues.
    queue.enqueue_many((0..30).map(|_| enqueue_light(&queue))).await.expect("stored");
    clock.advance(Duration::from_millis(1));
    queue.enqueue_many((0..30).map(|_| enqueue_heavy(&queue))).await.expect("stored");
    let builder = queue.worker().tasks([task_heavy(), task_light()]).state(journal.clone());
    let builder = builder.state(Gate::open_for(60));
    soon("all run", set(builder).run_until_idle()).await.expect("it ends");
    assert_eq!(journal.lines().len(), 60);
    journal.lines()
}

fn heavy_among(lines: &[String]) -> usize {
    lines.iter().filter(|line| *line == "heavy").count()
}

#[tokio::test]
async fn queues_take_turns_unless_weights_say_otherwise() {
    let lines = ran(|worker| worker.async_concurrency(1)).await;
    assert!(heavy_among(&lines[..40]).abs_diff(20) <= 1, "{lines:?}");
}

#[tokio::test]
async fn a_queue_of_weight_three_starts_three_jobs_for_each_of_one() {
    let lines = ran(|worker| worker.async_concurrency(1).weight("heavy", 3)).await;
    for end in [8, 16, 40] {
        let wanted = end * 3 / 4;
        assert!(heavy_among(&lines[..end]).abs_diff(wanted) <= 1, "{end}: {lines:?}");
    }
}

#[tokio::test]
async fn room_that_several_want_is_divided_by_weight() {
    let (queue, _clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate::open_for(0));
    queue.enqueue_many((0..30).map(|_| enqueue_light(&queue))).await.expect("stored");
    queue.enqueue_many((0..30).map(|_| enqueue_heavy(&queue))).await.expect("stored");
    let builder =
        queue.worker().tasks([task_heavy(), task_light()]).state(journal.clone()).state(gate.clone());
    let worker = builder.async_concurrency(8).weight("heavy", 3).start().await.expect("it starts");
    let full = async {
        while journal.lines().len() < 8 {
            tokio::task::yield_now().await;
        }
    };
    soon("all slots are filled", full).await;
    assert_eq!(heavy_among(&journal.lines()), 6);
    gate.0.add_permits(60);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn in_strict_order_a_later_queue_waits_for_the_earlier_ones() {
    for slots in [1, 4, 50] {
        let lines =
            ran(|worker| worker.queues(["heavy", "light"]).strict_order().async_concurrency(slots)).await;
        let before = heavy_among(&lines[..30]);
        assert!(before == 30 || slots == 50, "{slots} slots: {lines:?}");
        let lines =
            ran(|worker| worker.queues(["light", "heavy"]).strict_order().async_concurrency(slots)).await;
        assert!(heavy_among(&lines[..30]) == 0 || slots == 50, "{slots} slots: {lines:?}");
    }
}

#[tokio::test]
async fn a_worker_in_strict_order_is_woken_for_any_of_its_queues() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    let builder = queue.worker().tasks([task_heavy(), task_light()]).state(journal.clone());
    let worker =
        builder.state(Gate::open_for(40)).queues(["heavy", "light"]).strict_order().async_concurrency(1);
    let worker = worker.start().await.expect("it starts");
    for _ in 0..20 {
        let job = enqueue_light(&queue).await.expect("stored");
        soon("it runs", job.result()).await.expect("it succeeded");
        let job = enqueue_heavy(&queue).await.expect("stored");
        soon("it runs", job.result()).await.expect("it succeeded");
    }
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn an_order_that_makes_no_sense_is_refused_with_what_to_write() {
    let (queue, _clock) = queue().await;
    let worker = || {
        queue.worker().tasks([task_heavy(), task_light()]).state(Journal::default()).state(Gate::open_for(0))
    };
    let told = |error: Error| error.to_string();
    let refused = worker().weight("heavy", 0).start().await.expect_err("a weight of nothing");
    assert_eq!(told(refused), "invalid weight of queue heavy: 0; accepted: 1 to 1000");
    let refused = worker().weight("hevy", 2).start().await.expect_err("no such queue");
    assert_eq!(told(refused), r#"unknown queue "hevy"; did you mean "heavy"?"#);
    let refused = worker().strict_order().start().await.expect_err("no order");
    assert!(told(refused).contains(".queues([..]), which gives the order"));
    let both = worker().queues(["heavy", "light"]).strict_order().weight("heavy", 2);
    assert!(told(both.start().await.expect_err("both")).contains("one of the two"));
}
