//! However a body ends, a drain tells it as data and does not panic by itself.

use std::time::Duration;

use flexiq::testing::{End, TestQueue};
use flexiq::{Context, DeadReason, Retry, State};

use super::{MINUTE, SECOND, ends};

#[flexiq::task(queue = "endings", max_retries = 1, retry_backoff = "fixed 5s")]
async fn end(
    #[context] context: Context,
    how: String,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    match how.as_str() {
        "well" => Ok(()),
        "badly" => Err("boom".into()),
        "by panic" => panic!("no more"),
        "later" if context.deferrals() == 0 => Err(Retry::after(SECOND).into()),
        "never" => Err(Retry::never("no use").into()),
        "hold" if context.deferrals() == 0 => Err(context.hold_task(SECOND).into()),
        _ => Ok(()),
    }
}

/// Does not return before it is told to.
#[flexiq::task(queue = "endings", timeout = "30s", max_retries = 0)]
async fn stay() {
    std::future::pending().await
}

async fn told_of(how: &str) -> (TestQueue, End) {
    let test = TestQueue::builder().await;
    enqueue_end(test.queue(), how.into()).await.expect("stored");
    let told = test.drain().await;
    let [run] = &told.runs[..] else { panic!("one run: {told}") };
    let end = run.end.clone();
    (test, end)
}

#[tokio::test]
async fn each_way_a_run_ends_is_told_as_what_it_is() {
    assert_eq!(told_of("well").await.1, End::Succeeded);
    let failed = |error: &str| End::Failed { error: error.into(), retry_in: 5 * SECOND };
    assert_eq!(told_of("badly").await.1, failed("boom"));
    assert_eq!(told_of("by panic").await.1, failed("panicked: no more"));
    assert_eq!(told_of("later").await.1, End::Deferred { wait: SECOND });
    assert_eq!(told_of("hold").await.1, End::Held);
    let dead = End::Dead { reason: DeadReason::Never, error: Some("no use".into()) };
    assert_eq!(told_of("never").await.1, dead);
}

#[tokio::test]
async fn the_runs_of_a_job_are_told_in_order_and_counted_by_their_ends() {
    let (test, _) = told_of("badly").await;
    enqueue_end(test.queue(), "later".into()).await.expect("stored");
    let told = test.advance(MINUTE).await;
    let runs = ends(&told);
    assert!(runs.values().any(|ends| matches!(ends[..], [End::Dead { reason: DeadReason::Failures, .. }])));
    assert!(runs.values().any(|ends| matches!(ends[..], [End::Deferred { .. }, End::Succeeded])));
    assert_eq!((told.succeeded(), told.failed(), told.deferred(), told.dead()), (1, 1, 1, 1));
}

#[tokio::test]
async fn whoever_insists_on_success_is_told_what_happened_instead() {
    let test = TestQueue::builder().await;
    enqueue_end(test.queue(), "well".into()).await.expect("stored");
    enqueue_end(test.queue(), "badly".into()).await.expect("stored");
    let told = test.drain().await;
    let refused = std::panic::catch_unwind(|| told.expect_all_succeeded()).expect_err("one has failed");
    let refused = refused.downcast_ref::<String>().expect("it says why");
    assert!(
        refused.starts_with("of 2 jobs that ran, 1 have not succeeded, and 0 are still running:"),
        "{refused}"
    );
    assert!(refused.contains("of task end failed, and is tried again in 5s: boom"), "{refused}");
}

#[tokio::test]
async fn a_job_that_was_tried_again_and_succeeded_has_succeeded() {
    let test = TestQueue::builder().await;
    enqueue_end(test.queue(), "later".into()).await.expect("stored");
    let told = test.advance(SECOND).await.expect_all_succeeded();
    assert_eq!(told.runs.len(), 2);
}

#[tokio::test]
async fn a_body_that_does_not_return_is_told_as_running_and_ends_by_its_timeout() {
    let test = TestQueue::builder().patience(Duration::from_millis(20)).await;
    let job = enqueue_stay(test.queue()).await.expect("stored");
    let told = test.drain().await;
    assert_eq!((told.runs.len(), told.running.len()), (0, 1));
    assert_eq!(told.running[0].id, job.id());
    let told = test.advance(29 * SECOND).await;
    assert_eq!((told.runs.len(), told.running.len()), (0, 1));
    let before = test.now();
    let told = test.advance(MINUTE).await;
    let [run] = &told.runs[..] else { panic!("it has ended: {told}") };
    assert!(
        matches!(&run.end, End::Dead { error: Some(error), .. } if error.starts_with("timeout")),
        "{told}"
    );
    assert_eq!(run.at, before + SECOND, "at its moment, not at the end of what passes");
    assert_eq!(told.running.len(), 0);
}

#[tokio::test]
async fn a_running_body_whose_job_is_cancelled_is_dropped_a_second_later() {
    let test = TestQueue::builder().patience(Duration::from_millis(20)).await;
    let job = enqueue_stay(test.queue()).await.expect("stored");
    test.drain().await;
    job.cancel().await.expect("it is cancelled");
    // The worker is told at once, by a thread of its own.
    let told = async {
        while !job.status().await.expect("stored").state.is_ended() {
            test.advance(SECOND).await;
        }
    };
    flexiq_tests::soon("it ends", told).await;
    assert_eq!(job.status().await.expect("it is kept").state, State::Cancelled);
}
