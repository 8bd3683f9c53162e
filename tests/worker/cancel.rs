//! Cancelling, in each state of a job.

use std::time::Duration;

use flexiq::{Cancelled, Context, State};
use flexiq_tests::{Journal, ended, soon};

use super::queue;

#[flexiq::task]
async fn deaf(#[state] journal: Journal) {
    journal.note("running");
    std::future::pending::<()>().await;
}

#[flexiq::task]
async fn polite(#[state] journal: Journal, #[context] context: Context) -> Result<(), String> {
    journal.note("running");
    context.cancelled().await;
    Err("interrupted".into())
}

#[flexiq::task]
async fn quick_witted(
    #[state] journal: Journal,
    #[context] context: Context,
) -> Result<&'static str, String> {
    journal.note("running");
    context.cancelled().await;
    Ok("saved what was done")
}

#[tokio::test]
async fn a_waiting_job_that_is_cancelled_never_runs() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    let ready = enqueue_deaf(&queue).await.expect("stored");
    let delayed = enqueue_deaf(&queue).delay(Duration::from_secs(60)).await.expect("stored");
    for job in [&ready, &delayed] {
        assert_eq!(job.cancel().await.expect("it is there"), Cancelled::Done);
        assert_eq!(job.status().await.expect("it is kept").state, State::Cancelled);
        assert_eq!(job.cancel().await.expect("it is there"), Cancelled::AlreadyEnded(State::Cancelled));
    }
    let builder = queue.worker().tasks([task_deaf()]).state(journal.clone());
    soon("nothing is left", builder.run_until_idle()).await.expect("it ends");
    assert!(journal.lines().is_empty());
}

#[tokio::test]
async fn a_running_job_is_told_at_once_and_dropped_a_second_later() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let tasks = [task_deaf(), task_polite()];
    let worker = queue.worker().tasks(tasks).state(journal.clone()).start().await.expect("it starts");
    let polite = enqueue_polite(&queue).await.expect("stored");
    journal.wait_for("running", 1).await;
    assert_eq!(polite.cancel().await.expect("it is there"), Cancelled::Requested);
    let status = ended(&queue, polite.id()).await;
    assert_eq!((status.state, status.failures), (State::Cancelled, 0), "without the clock having moved");

    let deaf = enqueue_deaf(&queue).await.expect("stored");
    journal.wait_for("running", 2).await;
    assert_eq!(deaf.cancel().await.expect("it is there"), Cancelled::Requested);
    let status = async {
        // The second begins when the run is told, which takes a moment: move on until it is over.
        while !deaf.status().await.expect("it is kept").state.is_ended() {
            clock.advance(Duration::from_millis(100));
            tokio::task::yield_now().await;
        }
        deaf.status().await.expect("it is kept")
    };
    let status = soon("the deaf run is dropped", status).await;
    assert_eq!((status.state, status.failures, status.runs), (State::Cancelled, 0, 1));
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_run_that_succeeds_before_it_is_dropped_is_a_success() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    let worker =
        queue.worker().tasks([task_quick_witted()]).state(journal.clone()).start().await.expect("it starts");
    let job = enqueue_quick_witted(&queue).await.expect("stored");
    journal.wait_for("running", 1).await;
    job.cancel().await.expect("it is there");
    let value: String = soon("it succeeds", job.typed().result()).await.expect("it succeeded");
    assert_eq!(value, "saved what was done");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn an_unknown_job_is_an_error() {
    let (queue, _clock) = queue().await;
    let id = flexiq::JobId::new();
    let error = queue.cancel(id).await.expect_err("it was never stored");
    assert!(matches!(error, flexiq::Error::UnknownJob(unknown) if unknown == id), "{error}");
}
