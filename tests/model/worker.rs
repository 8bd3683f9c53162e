//! The model can back a queue with a worker: it wakes, leases and answers like a store.

use std::time::Duration;

use flexiq::internals::Clock;
use flexiq::{Context, Queue};
use flexiq_tests::{Journal, ModelStore, START, soon};

#[flexiq::task(retry_backoff = "fixed 5s", max_retries = 1)]
async fn flaky(#[state] journal: Journal, #[context] context: Context) -> Result<u32, String> {
    journal.note(context.attempt().to_string());
    if context.is_last_attempt() { Ok(context.attempt()) } else { Err("not yet".into()) }
}

#[tokio::test]
async fn a_worker_runs_and_retries_the_jobs_of_a_queue_in_the_model() {
    let (clock, hands) = Clock::manual(START);
    let queue = Queue::on(ModelStore::new(clock));
    let journal = Journal::default();
    let worker = queue.worker().tasks([task_flaky()]).state(journal.clone());
    let running = tokio::spawn(worker.run());
    let job = enqueue_flaky(&queue).await.expect("stored");
    flexiq_tests::scheduled(&queue, job.id()).await;
    hands.advance(Duration::from_secs(5));
    assert_eq!(soon("the job succeeds", job.result()).await.expect("it succeeded"), 2);
    assert_eq!(journal.lines(), ["1", "2"]);
    running.abort();
}
