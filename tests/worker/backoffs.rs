//! Waiting for a rate and waiting after a failure have nothing to do with each other.

use std::time::Duration;

use flexiq::internals::ManualClock;
use flexiq::{Context, JobHandle, Queue, Retry, ScheduledReason, State};
use flexiq_tests::{Journal, START, Spy, Verb, soon, until, wait_of};

use super::queue;

type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Notes its start, and fails the first run of the first job.
fn begin(journal: &Journal, context: &Context, number: u32) -> Result<(), &'static str> {
    journal.note("started");
    if number == 0 && context.failures() == 0 { Err("boom") } else { Ok(()) }
}

#[flexiq::task(rate_limit = "2/m", retry_backoff = "fixed 5m")]
async fn fixed(#[state] journal: Journal, #[context] context: Context, number: u32) -> Ended {
    Ok(begin(&journal, &context, number)?)
}

#[flexiq::task(rate_limit = "2/m", retry_backoff = "5m..3h")]
async fn doubling(#[state] journal: Journal, #[context] context: Context, number: u32) -> Ended {
    Ok(begin(&journal, &context, number)?)
}

#[flexiq::task(rate_limit = "2/m", retry_backoff = "fixed 5m")]
async fn panicking(#[state] journal: Journal, #[context] context: Context, number: u32) {
    begin(&journal, &context, number).expect("it does not succeed");
}

#[flexiq::task(rate_limit = "2/m")]
async fn chosen(#[state] journal: Journal, #[context] context: Context, number: u32) -> Result<(), Retry> {
    begin(&journal, &context, number).map_err(|error| Retry::failed(error, Duration::from_secs(300)))
}

#[flexiq::task(rate_limit = "2/m spread", retry_backoff = "fixed 5m")]
async fn spread(#[state] journal: Journal, #[context] context: Context, number: u32) -> Ended {
    Ok(begin(&journal, &context, number)?)
}

#[flexiq::task(partition_by = "one", rate_limit_per_partition = "2/m", retry_backoff = "fixed 5m")]
async fn partitioned(#[state] journal: Journal, #[context] context: Context, number: u32) -> Ended {
    Ok(begin(&journal, &context, number)?)
}

/// Lets half a minute pass while the worker beats.
async fn pass_half_a_minute(clock: &ManualClock, spy: &Spy) {
    for _ in 0..10 {
        let beats = spy.calls(Verb::Extend);
        clock.advance(Duration::from_secs(3));
        spy.wait_for(Verb::Extend, beats + 1).await;
    }
}

// https://github.com/taskforcesh/bullmq/issues/1302: jobs that a rate refused waited the 5 minutes of the failure back-off.
// https://github.com/bensheldon/good_job/issues/1353: they waited hours by the doubling one.
#[tokio::test]
async fn whatever_the_back_off_what_a_rate_refuses_starts_in_the_first_window_with_room() {
    for kind in ["fixed", "doubling", "panicking", "chosen", "spread", "partitioned"] {
        let (queue, clock) = queue().await;
        let spy = Spy::on(queue.below());
        let queue = Queue::on(spy.clone());
        let (journal, mut jobs) = (Journal::default(), Vec::<JobHandle<()>>::new());
        for number in 0..6 {
            let job = match kind {
                "fixed" => enqueue_fixed(&queue, number).await,
                "doubling" => enqueue_doubling(&queue, number).await,
                "panicking" => enqueue_panicking(&queue, number).await,
                "chosen" => enqueue_chosen(&queue, number).await,
                "spread" => enqueue_spread(&queue, number).await,
                _ => enqueue_partitioned(&queue, number).await,
            };
            jobs.push(job.expect("stored"));
            // In the order of their numbers.
            clock.advance(Duration::from_millis(1));
        }
        let tasks = [
            task_fixed(),
            task_doubling(),
            task_panicking(),
            task_chosen(),
            task_spread(),
            task_partitioned(),
        ];
        let worker = queue.worker().tasks(tasks).state(journal.clone()).start().await.expect("it starts");
        let failed = until(&queue, jobs[0].id(), kind, |job| job.failures == 1).await;
        assert_eq!(failed.state, State::Scheduled(ScheduledReason::Retry), "{kind}");
        let wait = wait_of(&failed, START);
        assert!(wait > Duration::from_secs(220), "{kind}: {wait:?}");
        // Six starts are three windows, or six halves: the failed run has spent one, and its retry is not due for minutes.
        for half in 0..6 {
            let starts = if kind == "spread" { half + 1 } else { (half / 2 + 1) * 2 };
            journal.wait_for("started", starts).await;
            assert_eq!(journal.count("started"), starts, "{kind}");
            pass_half_a_minute(&clock, &spy).await;
        }
        for job in &jobs[1..] {
            soon(kind, job.result()).await.expect("it succeeded");
            let status = job.status().await.expect("it is kept");
            assert_eq!((status.runs, status.failures, status.deferrals), (1, 0, 0), "{kind}");
        }
        let status = jobs[0].status().await.expect("it is stored");
        assert_eq!((status.due_at, status.runs), (failed.due_at, 1), "{kind}");
        worker.shutdown().await.expect("it stops");
    }
}
