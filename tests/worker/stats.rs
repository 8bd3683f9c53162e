//! What a worker says of itself with its beats is shown by `queue.stats()`.

use std::sync::Arc;
use std::time::Duration;

use flexiq::internals::ManualClock;
use flexiq::{Context, JobId, Queue, Retry, Stats, Worker, WorkerStats};
use flexiq_tests::{after_start, soon};
use tokio::sync::{Notify, mpsc};

use super::queue;

/// Says that a run has begun, and waits until the test lets it end.
#[derive(Clone)]
struct Stage {
    begun: mpsc::UnboundedSender<JobId>,
    end: Arc<Notify>,
}

#[flexiq::task(queue = "sights", max_retries = 0)]
async fn seen(
    #[state] stage: Stage,
    #[context] context: Context,
    ending: String,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stage.begun.send(context.job_id()).expect("the test listens");
    stage.end.notified().await;
    match ending.as_str() {
        "fails" => Err("as it was told".into()),
        "defers" => Err(Retry::after(Duration::from_secs(3_600)).into()),
        _ => Ok(()),
    }
}

#[flexiq::task(queue = "sights")]
fn seen_plain() {}

async fn start(queue: &Queue) -> (Worker, Stage, mpsc::UnboundedReceiver<JobId>) {
    let (begun, runs) = mpsc::unbounded_channel();
    let stage = Stage { begun, end: Arc::default() };
    let builder = queue.worker().tasks([task_seen(), task_seen_plain()]).async_concurrency(5).workers(2);
    let worker = builder.state(stage.clone()).start().await.expect("it starts");
    (worker, stage, runs)
}

/// Lets beats be due until the one worker shows what it should.
async fn until_told(queue: &Queue, clock: &ManualClock, is_so: impl Fn(&WorkerStats) -> bool) -> Stats {
    let look = async {
        loop {
            let stats = queue.stats().await.expect("the store answers");
            if stats.workers.iter().any(&is_so) {
                return stats;
            }
            clock.advance(Duration::from_millis(10));
            tokio::task::yield_now().await;
        }
    };
    soon("the worker tells", look).await
}

#[tokio::test]
async fn a_worker_tells_its_slots_and_its_runs_with_each_beat() {
    let (queue, clock) = queue().await;
    for ending in ["succeeds", "fails", "defers"] {
        enqueue_seen(&queue, ending.into()).await.expect("stored");
    }
    clock.advance(Duration::from_secs(7));
    let (worker, stage, mut runs) = start(&queue).await;
    for _ in 0..3 {
        soon("it runs", runs.recv()).await;
    }
    let stats = until_told(&queue, &clock, |worker| worker.async_slots.busy == 3).await;
    let [told] = &stats.workers[..] else { panic!("one worker lives: {stats:?}") };
    assert_eq!((told.async_slots.total, told.plain_slots.total, told.plain_slots.busy), (5, 2, 0));
    assert_eq!(
        (&*told.queues, &*told.tasks),
        (&["sights".to_owned()][..], &["seen".into(), "seen_plain".into()][..])
    );
    let [run] = &told.runs[..] else { panic!("one task was run: {told:?}") };
    assert_eq!((&*run.queue, &*run.task, run.running, run.started), ("sights", "seen", 3, 3));
    assert_eq!(
        (run.waited, run.ended.total()),
        (Duration::from_secs(21), 0),
        "from being ready to the start"
    );
    assert_eq!(run.oldest_run_at.map(after_start), Some(Duration::from_secs(7)));
    assert_eq!(after_start(told.since), Duration::from_secs(7));
    let task = stats.task("sights", "seen").expect("it has jobs");
    assert_eq!((task.counts.running, task.is_stranded, stats.drift), (3, false, 0));

    stage.end.notify_waiters();
    let stats = until_told(&queue, &clock, |worker| worker.runs[0].ended.total() == 3).await;
    let run = &stats.workers[0].runs[0];
    assert_eq!((run.ended.succeeded, run.ended.failed, run.ended.deferred), (1, 1, 1));
    assert_eq!((run.running, run.oldest_run_at, stats.workers[0].async_slots.busy), (0, None, 0));
    let longest = (after_start(stats.at) - Duration::from_secs(7)) * 3;
    assert!(run.ran > Duration::ZERO && run.ran <= longest, "{:?} of {longest:?}", run.ran);
    soon("it stops", worker.shutdown()).await.expect("it stops");
    assert_eq!(queue.stats().await.expect("the store answers").workers, []);
}

#[tokio::test]
async fn a_task_is_shown_without_jobs_as_long_as_a_worker_links_it() {
    let (queue, _clock) = queue().await;
    let (worker, ..) = start(&queue).await;
    queue.pause_task("seen_plain").await.expect("paused");
    let stats = queue.stats().await.expect("the store answers");
    let shown: Vec<_> = stats.tasks.iter().map(|task| (&*task.task, task.shut_by.len())).collect();
    assert_eq!(shown, [("seen", 0), ("seen_plain", 1)]);
    soon("it stops", worker.shutdown()).await.expect("it stops");
    assert_eq!(queue.stats().await.expect("the store answers").tasks, []);
}

#[tokio::test]
async fn jobs_that_no_live_worker_takes_are_stranded() {
    let (queue, _clock) = queue().await;
    enqueue_seen(&queue, "later".into()).delay(Duration::from_secs(60)).await.expect("stored");
    let is_stranded = async || {
        let stats = queue.stats().await.expect("the store answers");
        stats.task("sights", "seen").expect("it has a job").is_stranded
    };
    assert!(is_stranded().await);
    let (worker, ..) = start(&queue).await;
    assert!(!is_stranded().await);
    soon("it stops", worker.shutdown()).await.expect("it stops");
    assert!(is_stranded().await);
}

#[tokio::test]
async fn a_queue_shows_its_bounds_and_what_more_workers_could_start() {
    let (queue, _clock) = queue().await;
    for _ in 0..5 {
        enqueue_seen_plain(&queue).await.expect("stored");
    }
    queue.set_queue_max_pending("sights", 9).await.expect("set");
    queue.set_queue_concurrency("sights", 2).await.expect("set");
    let of_queue = async || {
        let stats = queue.stats().await.expect("the store answers");
        let of = stats.queue("sights").expect("it is known").clone();
        (of.pending, of.max_pending, of.startable, of.is_paused, stats.tasks[0].startable)
    };
    assert_eq!(of_queue().await, (5, Some(9), 2, false, 2));
    queue.pause_queue("sights").await.expect("paused");
    assert_eq!(of_queue().await, (5, Some(9), 0, true, 0), "and nothing of its tasks");
}
