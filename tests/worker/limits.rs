//! How much runs at once: on one worker, and on the whole fleet.

use flexiq::Queue;
use flexiq_tests::{Journal, Spy, Verb, soon};
use tokio::sync::Semaphore;

use std::sync::Arc;

use super::queue;

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

#[flexiq::task(max_concurrent = 3)]
async fn export(#[state] gate: Gate, #[state] journal: Journal) {
    journal.note("export");
    gate.pass().await;
}

#[flexiq::task(rate_limit = "5/m")]
async fn notify(#[state] journal: Journal) {
    journal.note("notify");
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

// https://github.com/conductor-oss/conductor/pull/1105: the rest waited a fixed time beside a slot that was free.
#[tokio::test]
async fn a_cap_holds_on_the_whole_fleet_and_a_freed_slot_is_filled_at_once() {
    let (queue, _clock) = queue().await;
    let (gate, journal) = (Gate::closed(), Journal::default());
    queue.enqueue_many((0..12).map(|_| enqueue_export(&queue))).await.expect("stored");
    let builder =
        queue.worker().tasks([task_export(), task_email()]).state(gate.clone()).state(journal.clone());
    let first = builder.clone().start().await.expect("it starts");
    let second = builder.start().await.expect("it starts");
    journal.wait_for("export", 3).await;
    let email = enqueue_email(&queue).await.expect("stored");
    soon("an email behind nine exports", email.result()).await.expect("it is sent");
    for done in 1..=9 {
        let counts = queue.counts().await.expect("counted");
        let exports = counts.iter().find(|task| task.task == "export").expect("it is known");
        assert!(exports.running <= 3, "{}", exports.running);
        gate.0.add_permits(1);
        journal.wait_for("export", 3 + done).await;
    }
    gate.0.add_permits(3);
    first.shutdown().await.expect("it stops");
    second.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_raised_cap_and_an_opened_window_start_what_waits() {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    let (gate, journal) = (Gate::closed(), Journal::default());
    queue.enqueue_many((0..5).map(|_| enqueue_export(&queue))).await.expect("stored");
    queue.enqueue_many((0..12).map(|_| enqueue_notify(&queue))).await.expect("stored");
    let builder =
        queue.worker().tasks([task_export(), task_notify()]).state(gate.clone()).state(journal.clone());
    let worker = builder.start().await.expect("it starts");
    journal.wait_for("export", 3).await;
    journal.wait_for("notify", 5).await;
    queue.set_task_concurrency("export", 5).await.expect("set");
    journal.wait_for("export", 5).await;
    for minute in 1..=2 {
        // The worker beats on the way to the next minute: without, its answers would come too late for it.
        for _ in 0..20 {
            let beats = spy.calls(Verb::Extend);
            clock.advance(std::time::Duration::from_secs(3));
            spy.wait_for(Verb::Extend, beats + 1).await;
        }
        journal.wait_for("notify", (5 * (minute + 1)).min(12)).await;
    }
    gate.0.add_permits(5);
    worker.shutdown().await.expect("it stops");
}

// https://github.com/sidekiq/sidekiq/issues/6185: a cap that its store had lost was wrong until a process restarted.
#[tokio::test]
async fn a_cap_that_the_store_has_lost_holds_again_by_the_next_beat_of_who_declares_it() {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    let (gate, journal) = (Gate::closed(), Journal::default());
    let builder = queue.worker().tasks([task_export()]).state(gate.clone()).state(journal.clone());
    let worker = builder.start().await.expect("it starts");
    queue.enqueue_many((0..3).map(|_| enqueue_export(&queue))).await.expect("stored");
    journal.wait_for("export", 3).await;
    spy.below().retire(spy.registered()[0]).await.expect("the store forgets it");
    assert!(queue.limits().await.expect("answered").is_empty());

    clock.advance(std::time::Duration::from_secs(3));
    spy.wait_for(Verb::Register, 2).await;
    assert_eq!(queue.limits().await.expect("answered")[0].limits().max_concurrent, Some(3));
    queue.enqueue_many((0..3).map(|_| enqueue_export(&queue))).await.expect("stored");
    gate.0.add_permits(1);
    journal.wait_for("export", 4).await;
    let counts = queue.counts().await.expect("counted");
    assert_eq!((counts[0].running, counts[0].ready), (3, 2));
    gate.0.add_permits(6);
    worker.shutdown().await.expect("it stops");
}
