//! A deferral is not a failure, in whichever way a body asks for it: it has a counter and a budget of its own.

use std::error::Error;
use std::time::{Duration, SystemTime};

use flexiq::internals::ManualClock;
use flexiq::{Context, DeadReason, JobHandle, Queue, Retry, ScheduledReason, State};
use flexiq_tests::{START, ended, soon, until, wait_of};

use super::queue;

const SECOND: Duration = Duration::from_secs(1);
/// The ways in which a body says "later".
const WAYS: [&str; 5] = ["after", "at", "hold task", "hold partition", "hold queue"];

/// Says "later" for so many runs, each time for a second, and then succeeds or fails. It has not one retry.
#[flexiq::task(queue = "put-off", partition_by = way, max_retries = 0)]
async fn put_off(
    #[context] context: Context,
    way: String,
    times: u32,
) -> Result<u32, Box<dyn Error + Send + Sync>> {
    if context.deferrals() < times {
        return Err(later(&context, &way).into());
    }
    Ok(context.deferrals())
}

#[flexiq::task(queue = "put-off", partition_by = way, max_retries = 1)]
async fn put_off_and_fail(
    #[context] context: Context,
    way: String,
    times: u32,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    if context.deferrals() < times {
        return Err(later(&context, &way).into());
    }
    Err("boom".into())
}

#[flexiq::task(queue = "put-off", partition_by = way, max_deferrals = 2, max_retries = 5)]
async fn put_off_twice(
    #[context] context: Context,
    way: String,
    script: String,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    match script.as_bytes().get(context.run() as usize - 1) {
        Some(b'd') => Err(later(&context, &way).into()),
        Some(b'f') => Err(Retry::failed("boom", SECOND).into()),
        _ => Ok(()),
    }
}

fn later(context: &Context, way: &str) -> Retry {
    match way {
        "after" => Retry::after(SECOND),
        "at" => Retry::at(SystemTime::from(START) + SECOND * (context.deferrals() + 1)),
        "hold task" => context.hold_task(SECOND),
        "hold partition" => context.hold_partition(SECOND),
        _ => context.hold_queue(SECOND),
    }
}

/// Lets the job be put off so often, and time pass until it runs again.
async fn put_off_times<T>(queue: &Queue, clock: &ManualClock, job: &JobHandle<T>, times: u32) {
    for deferrals in 1..=times {
        let is_put_off = |job: &flexiq::Job| job.deferrals == deferrals && job.state != State::Running;
        let status = until(queue, job.id(), "one more deferral", is_put_off).await;
        assert_eq!((status.failures, status.losses, status.runs), (0, 0, deferrals));
        clock.advance(SECOND);
    }
}

// https://github.com/taskforcesh/bullmq/issues/1571: deferrals for a rate spent the tries.
// https://github.com/Bogdanp/dramatiq/issues/257: a job was dropped unrun, being put off as often as it had tries.
#[tokio::test]
async fn a_job_without_retries_may_be_put_off_in_any_way_and_counts_no_failure() {
    for way in WAYS {
        let (queue, clock) = queue().await;
        let job = enqueue_put_off(&queue, way.into(), 7).await.expect("stored");
        let worker = queue.worker().tasks([task_put_off()]).start().await.expect("it starts");
        put_off_times(&queue, &clock, &job, 7).await;
        assert_eq!(soon(way, job.result()).await.expect("it succeeded"), 7);
        let status = job.status().await.expect("it is kept");
        assert_eq!((status.failures, status.deferrals, status.runs), (0, 7, 8), "{way}");
        worker.shutdown().await.expect("it stops");
    }
}

// https://github.com/oban-bg/oban/issues/476: after many deferrals the first failure waited for days.
#[tokio::test]
async fn after_any_number_of_deferrals_the_first_failure_waits_as_the_first() {
    for (way, times) in WAYS.into_iter().flat_map(|way| [1, 15].map(|times| (way, times))) {
        let (queue, clock) = queue().await;
        let job = enqueue_put_off_and_fail(&queue, way.into(), times).await.expect("stored");
        let worker = queue.worker().tasks([task_put_off_and_fail()]).start().await.expect("it starts");
        put_off_times(&queue, &clock, &job, times).await;
        let status = until(&queue, job.id(), "it fails", |job| job.failures == 1).await;
        assert_eq!(status.state, State::Scheduled(ScheduledReason::Retry));
        let wait = wait_of(&status, START + SECOND * times);
        assert!((750..=1_250).contains(&wait.as_millis()), "{wait:?} after {times} of {way}");
        worker.shutdown().await.expect("it stops");
    }
}

// https://github.com/taskforcesh/bullmq/issues/1571: whether there is an end to it was not said.
// https://github.com/sidekiq/sidekiq/issues/6010: after a failure the spent budget of deferrals made each a failure. The
// rule here: the budget is the job's over all attempts, past it the job is dead and says so, and a retry by hand begins anew.
#[tokio::test]
async fn the_budget_of_deferrals_is_the_jobs_over_all_attempts_until_it_is_retried_by_hand() {
    for way in WAYS {
        let (queue, clock) = queue().await;
        let job = enqueue_put_off_twice(&queue, way.into(), "dfddddf".into()).await.expect("stored");
        let worker = queue.worker().tasks([task_put_off_twice()]).start().await.expect("it starts");
        for run in 1..=3 {
            until(&queue, job.id(), "one more run", |job| job.runs == run && job.state != State::Running)
                .await;
            clock.advance(SECOND);
        }
        let status = ended(&queue, job.id()).await;
        assert_eq!(status.state, State::Dead(DeadReason::Deferrals), "{way}");
        assert_eq!((status.failures, status.deferrals, status.runs), (1, 3, 4), "{way}");

        assert!(queue.retry(job.id()).await.expect("it is retried"));
        // The last deferral may have held what this run needs.
        clock.advance(SECOND);
        for run in 5..=6 {
            until(&queue, job.id(), "one more run", |job| job.runs == run && job.state != State::Running)
                .await;
            clock.advance(SECOND);
        }
        let status = until(&queue, job.id(), "it fails", |job| job.failures == 1).await;
        assert_eq!(status.state, State::Scheduled(ScheduledReason::Retry), "{way}");
        assert_eq!(status.deferrals, 2, "{way}: the budget was fresh");
        worker.shutdown().await.expect("it stops");
    }
}
