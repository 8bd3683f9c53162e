//! What runs first on a worker with one slot.

use std::time::Duration;

use flexiq::State;
use flexiq_tests::{Journal, soon};

use super::queue;

#[flexiq::task]
async fn first_task(#[state] journal: Journal, name: String) {
    journal.note(name);
}

#[flexiq::task(priority = 5)]
async fn second_task(#[state] journal: Journal, name: String) {
    journal.note(name);
}

#[flexiq::task(expires = "1m")]
async fn stale(#[state] journal: Journal) {
    journal.note("stale");
}

#[tokio::test]
async fn higher_priorities_come_first_and_then_the_older_across_tasks() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    for (name, priority) in [("a", 0), ("b", 0), ("c", 10)] {
        enqueue_first_task(&queue, name.into()).priority(priority).await.expect("stored");
        clock.advance(Duration::from_millis(1));
    }
    enqueue_second_task(&queue, "d".into()).await.expect("stored");
    clock.advance(Duration::from_millis(1));
    enqueue_second_task(&queue, "e".into()).priority(0).await.expect("stored");
    let tasks = [task_first_task(), task_second_task()];
    let builder = queue.worker().tasks(tasks).async_concurrency(1).state(journal.clone());
    soon("all run", builder.run_until_idle()).await.expect("it ends");
    assert_eq!(journal.lines(), ["c", "d", "a", "b", "e"]);
}

#[tokio::test]
async fn a_job_that_did_not_start_in_time_expires() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let late = enqueue_stale(&queue).await.expect("stored");
    let patient = enqueue_stale(&queue).expires(Duration::from_secs(3_600)).await.expect("stored");
    let delayed = enqueue_stale(&queue).delay(Duration::from_secs(30)).await.expect("stored");
    clock.advance(Duration::from_secs(60));
    let builder = queue.worker().tasks([task_stale()]).state(journal.clone());
    soon("the others run", builder.run_until_idle()).await.expect("it ends");
    assert_eq!(late.status().await.expect("it is kept").state, State::Expired);
    assert_eq!(patient.status().await.expect("it is kept").state, State::Succeeded);
    assert_eq!(
        delayed.status().await.expect("it is kept").state,
        State::Succeeded,
        "counted from its due time"
    );
    let error = soon("it has ended", late.result()).await.expect_err("it expired");
    assert!(error.to_string().ends_with("of task stale is expired"), "{error}");
}
