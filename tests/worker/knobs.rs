//! The knobs of the fleet, turned while workers run.

use std::sync::Arc;
use std::time::Duration;

use flexiq::{Error, Queue, State};
use flexiq_tests::{Journal, soon};
use tokio::sync::Semaphore;

use super::{queue, url};

/// Opened by the test, one permit for each run that may end.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

impl Gate {
    fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

#[flexiq::task(queue = "video", max_concurrent = 2)]
async fn transcode(#[state] gate: Gate, #[state] journal: Journal) {
    journal.note("transcode");
    gate.0.acquire().await.expect("never closed for good").forget();
}

#[flexiq::task(queue = "video", rate_limit = "2/m")]
async fn announce(#[state] journal: Journal) {
    journal.note("announce");
}

#[flexiq::task(queue = "video")]
async fn tag(#[state] journal: Journal) {
    journal.note("tag");
}

#[flexiq::task(any_queue)]
async fn roam() {}

struct Bench {
    queue: Queue,
    clock: flexiq::internals::ManualClock,
    gate: Gate,
    journal: Journal,
}

impl Bench {
    async fn new() -> Self {
        let (queue, clock) = queue().await;
        Self { queue, clock, gate: Gate::closed(), journal: Journal::default() }
    }

    async fn worker(&self) -> flexiq::Worker {
        self.queue
            .worker()
            .tasks([task_transcode(), task_announce(), task_tag(), task_roam()])
            .state(self.gate.clone())
            .state(self.journal.clone())
            .start()
            .await
            .expect("it starts")
    }

    /// Enqueues a tag, and waits until it has run: what could have started before it has started.
    async fn pass(&self) {
        let tag = enqueue_tag(&self.queue).await.expect("stored");
        soon("a tag runs", tag.result()).await.expect("it succeeded");
    }
}

#[tokio::test]
async fn a_cap_holds_over_two_workers_and_a_freed_one_is_filled_at_once() {
    let bench = Bench::new().await;
    let workers = [bench.worker().await, bench.worker().await];
    bench.queue.enqueue_many((0..6).map(|_| enqueue_transcode(&bench.queue))).await.expect("stored");
    for started in 2..=5 {
        bench.journal.wait_for("transcode", started).await;
        bench.pass().await;
        assert_eq!(bench.journal.count("transcode"), started, "two at a time");
        bench.gate.0.add_permits(1);
    }
    bench.gate.0.add_permits(6);
    bench.journal.wait_for("transcode", 6).await;
    for worker in workers {
        worker.shutdown().await.expect("it stops");
    }
}

#[tokio::test]
async fn a_raised_cap_starts_waiting_jobs_at_once_and_a_cleared_one_is_the_declared_again() {
    let bench = Bench::new().await;
    let worker = bench.worker().await;
    bench.queue.enqueue_many((0..6).map(|_| enqueue_transcode(&bench.queue))).await.expect("stored");
    bench.journal.wait_for("transcode", 2).await;
    bench.queue.set_task_concurrency("transcode", 5).await.expect("set");
    bench.journal.wait_for("transcode", 5).await;
    bench.queue.clear_task_concurrency("transcode").await.expect("cleared");
    bench.gate.0.add_permits(3);
    bench.pass().await;
    assert_eq!(bench.journal.count("transcode"), 5, "two still run, and the declared cap is two");
    bench.gate.0.add_permits(1);
    bench.journal.wait_for("transcode", 6).await;
    bench.gate.0.add_permits(6);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_paused_task_starts_nothing_until_it_is_resumed_and_others_go_on() {
    let bench = Bench::new().await;
    let worker = bench.worker().await;
    bench.queue.pause_task("announce").await.expect("paused");
    let job = enqueue_announce(&bench.queue).await.expect("stored");
    bench.pass().await;
    assert_eq!(job.status().await.expect("it is there").state, State::Ready);
    bench.queue.resume_task("announce").await.expect("resumed");
    soon("it starts at once", job.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_paused_queue_starts_nothing_until_it_is_resumed() {
    let bench = Bench::new().await;
    let worker = bench.worker().await;
    bench.queue.pause_queue("video").await.expect("paused");
    let job = enqueue_tag(&bench.queue).await.expect("stored");
    let roaming = enqueue_roam(&bench.queue).await.expect("stored");
    soon("another queue goes on", roaming.result()).await.expect("it succeeded");
    assert_eq!(job.status().await.expect("it is there").state, State::Ready);
    bench.queue.resume_queue("video").await.expect("resumed");
    soon("it starts at once", job.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn an_opened_window_starts_the_next_at_its_moment() {
    let bench = Bench::new().await;
    let worker = bench.worker().await;
    bench.queue.enqueue_many((0..5).map(|_| enqueue_announce(&bench.queue))).await.expect("stored");
    for started in [2, 4, 5] {
        bench.journal.wait_for("announce", started).await;
        bench.pass().await;
        assert_eq!(bench.journal.count("announce"), started, "two a minute");
        bench.clock.advance(Duration::from_secs(60));
    }
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_queue_can_be_capped_and_rated_as_a_whole() {
    let bench = Bench::new().await;
    let worker = bench.worker().await;
    bench.queue.set_queue_concurrency("video", 1).await.expect("set");
    bench.queue.enqueue_many((0..2).map(|_| enqueue_transcode(&bench.queue))).await.expect("stored");
    bench.journal.wait_for("transcode", 1).await;
    let tag = enqueue_tag(&bench.queue).await.expect("stored");
    let roaming = enqueue_roam(&bench.queue).await.expect("stored");
    soon("another queue goes on", roaming.result()).await.expect("it succeeded");
    assert_eq!((bench.journal.count("transcode"), bench.journal.count("tag")), (1, 0));
    bench.queue.clear_queue_concurrency("video").await.expect("cleared");
    soon("it starts at once", tag.result()).await.expect("it succeeded");
    bench.journal.wait_for("transcode", 2).await;
    bench.gate.0.add_permits(2);

    bench.queue.set_queue_rate_limit("video", "1/m").await.expect("set");
    bench.pass().await;
    let waiting = enqueue_tag(&bench.queue).await.expect("stored");
    let roaming = enqueue_roam(&bench.queue).await.expect("stored");
    soon("another queue goes on", roaming.result()).await.expect("it succeeded");
    assert_eq!(waiting.status().await.expect("it is there").state, State::Ready, "one a minute");
    bench.queue.clear_queue_rate_limit("video").await.expect("cleared");
    soon("it starts at once", waiting.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_full_queue_refuses_and_takes_again_when_there_is_room() {
    let queue = Queue::builder(url()).max_pending("video", 2).open().await.expect("it opens");
    enqueue_tag(&queue).await.expect("the first");
    let delayed = enqueue_tag(&queue).delay(Duration::from_secs(3_600)).await.expect("the second");
    let error = enqueue_tag(&queue).await.expect_err("the third");
    assert!(matches!(&error, Error::QueueFull { max_pending: 2, pending: 2, .. }), "{error}");
    assert_eq!(error.to_string(), "queue video is full: 2 pending jobs, and max_pending is 2");
    let batch = queue.enqueue_many((0..2).map(|_| enqueue_tag(&queue)));
    assert!(matches!(batch.await, Err(Error::QueueFull { .. })));
    enqueue_roam(&queue).await.expect("another queue has no limit");
    queue.set_queue_max_pending("video", 3).await.expect("set");
    enqueue_tag(&queue).await.expect("the third, by what was set");
    queue.clear_queue_max_pending("video").await.expect("cleared");
    enqueue_tag(&queue).await.expect_err("the declared limit again");
    delayed.cancel().await.expect("cancelled");
    enqueue_tag(&queue).await.expect_err("two are still pending");
}

#[tokio::test]
async fn wrong_knobs_are_refused_saying_what_to_write() {
    let (queue, _clock) = queue().await;
    for (refused, words) in [
        (
            queue.set_task_concurrency("transcode", 0).await,
            "invalid concurrency: 0; accepted: 1 or more; to start none at all, use pause_task",
        ),
        (
            queue.set_queue_concurrency("video", 0).await,
            "invalid concurrency: 0; accepted: 1 or more; to start none at all, use pause_queue",
        ),
        (
            queue.set_task_concurrency("transcod", 1).await,
            "unknown task \"transcod\"; did you mean \"transcode\"?",
        ),
        (queue.pause_task("transcod").await, "unknown task \"transcod\"; did you mean \"transcode\"?"),
        (queue.pause_queue("vidoe").await, "unknown queue \"vidoe\"; did you mean \"video\"?"),
        (queue.set_queue_max_pending("video", 0).await, "invalid max_pending: 0; accepted: 1 or more"),
    ] {
        assert_eq!(refused.expect_err(words).to_string(), words);
    }
    let error =
        queue.set_task_rate_limit("transcode", "100/x").await.expect_err("no such period").to_string();
    assert!(error.contains("`s`, `m`, `h`, `d`"), "{error}");
    queue.pause_task("roam").await.expect("pausing is for every task");
    let error = queue.set_task_concurrency("roam", 1).await.expect_err("it has no home").to_string();
    assert!(error.contains("any_queue"), "{error}");
    let error = Queue::builder("sqlite::memory:")
        .max_pending("a b", 1)
        .open()
        .await
        .expect_err("no name")
        .to_string();
    assert!(error.starts_with("invalid queue name"), "{error}");
}

#[tokio::test]
async fn what_holds_is_shown_with_where_it_comes_from() {
    let bench = Bench::new().await;
    let worker = bench.worker().await;
    bench.queue.set_task_rate_limit("transcode", "10/s").await.expect("set");
    bench.queue.pause_queue("video").await.expect("paused");
    let limits = bench.queue.limits().await.expect("shown");
    let of = |scope: &str| {
        limits.iter().find(|standing| format!("{:?}", standing.scope).contains(scope)).expect("it is shown")
    };
    let transcode = of("transcode");
    assert_eq!((transcode.declared.max_concurrent, transcode.overrides.max_concurrent), (Some(2), None));
    assert_eq!(transcode.limits().rates.len(), 1);
    assert!(of("video").is_paused && !transcode.is_paused);
    worker.shutdown().await.expect("it stops");
}
