//! Inline, an enqueue is answered when its job has ended.

use std::time::Duration;

use flexiq::testing::{TestQueue, assert_enqueued};
use flexiq::{Context, Error, Retry, State};
use flexiq_tests::soon;

use super::{HOUR, MINUTE};

#[flexiq::task(queue = "inline", rate_limit = "1/h")]
async fn double(#[context] context: Context, number: u32) -> Result<u32, Retry> {
    match (context.deferrals(), context.failures()) {
        (0, _) => Err(Retry::after(MINUTE)),
        (_, 0) => Err(Retry::failed("not yet", MINUTE)),
        _ => Ok(2 * number),
    }
}

#[flexiq::task(queue = "inline", max_retries = 2)]
async fn fail() -> Result<(), String> {
    Err("boom".into())
}

#[flexiq::task(queue = "inline")]
async fn put_off() -> Result<(), Retry> {
    Err(Retry::after(HOUR))
}

#[flexiq::task(queue = "inline")]
async fn linger() {
    std::future::pending().await
}

/// Waits for what it has enqueued itself, by the test's own handle.
#[flexiq::task(queue = "outer")]
async fn outer(
    #[context] context: Context,
    number: u32,
) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    let inner = enqueue_inner(context.queue(), number).await?;
    Ok(inner.result().await? + 1)
}

#[flexiq::task(queue = "inner")]
async fn inner(number: u32) -> Result<u32, Retry> {
    Ok(10 * number)
}

#[tokio::test]
async fn a_handle_has_the_result_whatever_time_its_job_takes() {
    let test = TestQueue::builder().inline().await;
    let before = test.now();
    for number in 1..=2 {
        let job = enqueue_double(test.queue(), number).delay(HOUR).await.expect("stored");
        assert_eq!(job.status().await.expect("it is kept").state, State::Succeeded);
        assert_eq!(soon("it is there", job.result()).await.expect("it succeeded"), 2 * number);
    }
    assert!(test.now() >= before + 6 * HOUR, "a start an hour");
}

#[tokio::test]
async fn a_schedule_that_is_run_by_hand_is_answered_when_its_job_has_ended_too() {
    let test = TestQueue::builder().inline().await;
    let call = enqueue_inner(test.queue(), 4);
    test.queue().schedule("by-hand", "0 0 1 1 *", "UTC", call).await.expect("set");
    let job = test.queue().run_schedule_now("by-hand").await.expect("stored");
    assert_eq!(job.status().await.expect("it is kept").state, State::Succeeded);
}

#[tokio::test]
async fn a_job_that_fails_is_tried_again_until_it_is_dead_and_its_handle_has_the_story() {
    let test = TestQueue::builder().inline().await;
    let job = enqueue_fail(test.queue()).await.expect("stored");
    let Err(Error::JobFailed(story)) = soon("it is there", job.result()).await else {
        panic!("it cannot succeed")
    };
    assert_eq!((story.failures, story.last_error.as_deref()), (3, Some("boom")));
}

#[tokio::test]
async fn a_batch_is_answered_when_all_of_it_has_ended() {
    let test = TestQueue::builder().inline().await;
    let jobs = (0..3).map(|number| enqueue_inner(test.queue(), number));
    for (number, job) in test.queue().enqueue_many(jobs).await.expect("stored").iter().enumerate() {
        let value = soon("it is there", job.result()).await.expect("it succeeded");
        assert_eq!(value as usize, 10 * number);
    }
}

#[tokio::test]
async fn what_a_body_enqueues_runs_beside_it() {
    let test = TestQueue::builder().inline().await;
    let job = enqueue_outer(test.queue(), 4).await.expect("stored");
    assert_eq!(soon("it is there", job.result()).await.expect("it succeeded"), 41);
    assert_enqueued!(test, inner, number == 4);
}

#[tokio::test]
async fn what_cannot_end_is_left_as_it_is() {
    let test = TestQueue::builder().inline().patience(Duration::from_millis(20)).await;
    test.queue().pause_task("inner").await.expect("it is paused");
    let paused = enqueue_inner(test.queue(), 1).await.expect("stored");
    assert_eq!(paused.status().await.expect("stored").state, State::Ready);
    let put_off = enqueue_put_off(test.queue()).await.expect("stored");
    let put_off = put_off.status().await.expect("stored");
    assert!(put_off.state.is_pending() && put_off.deferrals >= 100, "{put_off:?}");
    let lingers = enqueue_linger(test.queue()).await.expect("stored");
    assert_eq!(lingers.status().await.expect("stored").state, State::Running);
}
