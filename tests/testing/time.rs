//! Time passes when the test says so, and what happens meanwhile happens each at its moment.

use std::time::{Duration, Instant};

use flexiq::testing::{End, TestQueue};
use flexiq::{Cause, Context, Retry, State};

use super::{HOUR, MINUTE, SECOND, ends, moments};

#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Job(#[from] Retry),
    #[error("the renderer is broken")]
    Broken,
}

/// Defers itself at first, then fails, and then succeeds.
#[flexiq::task(queue = "reports", rate_limit = "2/m", max_retries = 3)]
async fn build_report(#[context] context: Context, month: String) -> Result<String, ReportError> {
    match (context.deferrals(), context.failures()) {
        (0, _) => Err(Retry::after(10 * MINUTE).into()),
        (_, 0) => Err(ReportError::Broken),
        _ => Ok(format!("the report of {month}")),
    }
}

#[flexiq::task(queue = "time", expires = "1m")]
async fn tick() {}

#[flexiq::task(queue = "time", rate_limit = "10/m spread")]
async fn spaced() {}

#[tokio::test]
async fn a_task_that_is_rated_retried_and_deferred_is_tested_in_no_time() {
    let begun = Instant::now();
    let test = TestQueue::builder().await;
    let mut jobs = Vec::new();
    for month in 1..=6 {
        jobs.push(enqueue_build_report(test.queue(), format!("2026-{month:02}")).await.expect("stored"));
    }
    let start = test.now();
    let told = test.drain().await;
    assert_eq!((told.deferred(), told.pending), (2, 6), "two start in a minute, and defer themselves");
    let spent =
        told.waiting.iter().filter(|waiting| matches!(waiting.why.causes[..], [Cause::Spent { .. }, ..]));
    assert_eq!(spent.count(), 4, "{told}");

    let told = test.advance(HOUR).await;
    assert_eq!((told.succeeded(), told.failed(), told.deferred(), told.dead()), (6, 6, 4, 0), "{told}");
    let moments = moments(&told, start);
    for window in moments.windows(3) {
        assert!(window[2] - window[0] >= MINUTE, "three starts within a minute: {moments:?}");
    }
    assert_eq!(moments[..4], [MINUTE, MINUTE, 2 * MINUTE, 2 * MINUTE], "as soon as the rate lets them");
    for runs in ends(&told).values() {
        assert!(matches!(runs[..], [.., End::Failed { .. }, End::Succeeded]), "{runs:?}");
    }
    for job in &jobs[4..] {
        assert!(job.result().await.expect("it succeeded").starts_with("the report of 2026-"));
    }
    println!("an hour of six jobs in {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(30), "it slept for real: {:?}", begun.elapsed());
}

#[tokio::test]
async fn what_is_due_on_the_way_runs_at_its_moment_and_what_is_due_later_waits() {
    let test = TestQueue::builder().await;
    let start = test.now();
    for delay in [3 * HOUR, 10 * SECOND, 24 * HOUR, HOUR] {
        enqueue_tick(test.queue()).delay(delay).await.expect("stored");
    }
    let told = test.advance(3 * HOUR).await.expect_all_succeeded();
    assert_eq!(moments(&told, start), [10 * SECOND, HOUR, 3 * HOUR]);
    assert_eq!((told.pending, test.now()), (1, start + 3 * HOUR));
    let told = test.advance(24 * HOUR).await;
    assert_eq!(moments(&told, start), [24 * HOUR]);
    assert_eq!(test.now(), start + 27 * HOUR);
}

#[tokio::test]
async fn a_month_passes_and_the_worker_is_still_there() {
    let test = TestQueue::builder().await;
    test.advance(30 * 24 * HOUR).await;
    enqueue_tick(test.queue()).await.expect("stored");
    enqueue_tick(test.queue()).delay(30 * 24 * HOUR).await.expect("stored");
    let told = test.drain().await.expect_all_succeeded();
    assert_eq!(told.succeeded(), 1);
    assert!(matches!(told.waiting[0].why.causes[..], [Cause::NotDue { .. }]), "{told}");
    assert_eq!(test.advance(30 * 24 * HOUR).await.succeeded(), 1);
}

#[tokio::test]
async fn starts_that_are_spaced_come_one_by_one() {
    let test = TestQueue::builder().await;
    let start = test.now();
    for _ in 0..5 {
        enqueue_spaced(test.queue()).await.expect("stored");
    }
    let told = test.advance(MINUTE).await;
    assert_eq!(moments(&told, start), [0, 6, 12, 18, 24].map(Duration::from_secs));
}

#[tokio::test]
async fn a_job_that_is_paused_until_it_expires_never_runs() {
    let test = TestQueue::builder().await;
    test.queue().pause_queue("time").await.expect("it is paused");
    let job = enqueue_tick(test.queue()).await.expect("stored");
    test.advance(MINUTE).await;
    test.queue().resume_queue("time").await.expect("it is resumed");
    assert_eq!(test.drain().await.runs, []);
    assert_eq!(job.status().await.expect("it is kept").state, State::Expired);
}

#[tokio::test]
async fn the_clock_begins_where_it_is_told_to() {
    let moment = std::time::SystemTime::UNIX_EPOCH + 50 * 365 * 24 * HOUR;
    let test = TestQueue::builder().starts_at(moment).await;
    assert_eq!(test.now(), moment);
    let job = enqueue_tick(test.queue()).at(moment + HOUR).await.expect("stored");
    test.advance(HOUR).await.expect_all_succeeded();
    assert_eq!(job.status().await.expect("it is kept").started_at, Some(moment + HOUR));
}

/// Sleeps by tokio's clock.
#[flexiq::task(queue = "time")]
async fn nap(hours: u32) {
    tokio::time::sleep(hours * HOUR).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_sleeps_takes_no_time_where_the_test_has_stopped_tokios_clock_and_moves_no_other() {
    let (begun, before) = (Instant::now(), tokio::time::Instant::now());
    let test = TestQueue::builder().patience(Duration::from_secs(20)).await;
    let start = test.now();
    for hours in 1..=3 {
        enqueue_nap(test.queue(), hours).await.expect("stored");
    }
    assert_eq!(test.drain().await.expect_all_succeeded().succeeded(), 3);
    assert!(before.elapsed() >= 3 * HOUR, "they slept");
    assert_eq!(test.now(), start);
    enqueue_nap(test.queue(), 1).delay(HOUR).await.expect("stored");
    assert_eq!(test.advance(HOUR).await.expect_all_succeeded().succeeded(), 1);
    assert!(begun.elapsed() < Duration::from_secs(20), "nobody waited for real: {:?}", begun.elapsed());
}
