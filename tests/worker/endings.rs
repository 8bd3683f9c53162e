//! How runs end, and what becomes of their jobs.

use std::error::Error;
use std::time::{Duration, SystemTime};

use flexiq::internals::Timestamp;
use flexiq::{Context, DeadReason, Retry, ScheduledReason, State};
use flexiq_tests::{Journal, START, ended, scheduled, soon, wait_of};

use super::queue;

type Failure = Box<dyn Error + Send + Sync>;

/// Defers until it was deferred so often.
#[flexiq::task(max_retries = 1)]
async fn defer_often(#[context] context: Context, times: u32) -> Result<u32, Retry> {
    if context.deferrals() < times {
        return Err(Retry::after(Duration::from_secs(1)));
    }
    Ok(context.deferrals())
}

/// Takes its next step from a script: `d` defers for a minute, `f` fails, `s` succeeds.
#[flexiq::task(max_retries = 5)]
async fn follow(#[context] context: Context, script: String) -> Result<(), Failure> {
    match script.as_bytes().get(context.run() as usize - 1) {
        Some(b'd') => Err(Retry::after(Duration::from_secs(60)).into()),
        Some(b'f') => Err("boom".into()),
        _ => Ok(()),
    }
}

#[flexiq::task]
async fn add(left: u64, right: u64) -> Result<u64, Failure> {
    Ok(left + right)
}

#[flexiq::task]
fn add_plainly(#[state] journal: Journal, left: u64, right: u64) -> Result<u64, Failure> {
    journal.note(std::thread::current().name().unwrap_or("?"));
    Ok(left + right)
}

#[flexiq::task(max_retries = 0)]
async fn explode() {
    panic!("the fuse was {}", "short");
}

#[flexiq::task(max_retries = 0)]
fn explode_plainly() {
    panic!("bang");
}

#[flexiq::task]
async fn give_up() -> Result<(), Retry> {
    Err(Retry::never("the account is closed"))
}

#[flexiq::task]
async fn fail_for(seconds: u64) -> Result<(), Retry> {
    Err(Retry::failed("the partner is down", Duration::from_secs(seconds)))
}

#[flexiq::task]
async fn wait_until(moment: u64) -> Result<(), Retry> {
    Err(Retry::at(SystemTime::UNIX_EPOCH + Duration::from_millis(moment)))
}

#[flexiq::task(max_deferrals = 2)]
async fn defer_for_ever() -> Result<(), Retry> {
    Err(Retry::after(Duration::from_secs(1)))
}

#[flexiq::task(timeout = "30s", max_retries = 0)]
async fn hang(#[state] journal: Journal) {
    journal.note("hanging");
    let _told = Told(journal);
    std::future::pending::<()>().await;
}

/// Notes when it is dropped.
struct Told(Journal);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}

#[flexiq::task(timeout = "30s", max_retries = 0)]
fn hang_plainly(#[state] journal: Journal, #[context] context: Context) {
    journal.note("hanging");
    context.block_on(context.cancelled());
}

// https://github.com/taskforcesh/bullmq/issues/1571: deferrals spent the tries.
#[tokio::test]
async fn fifty_deferrals_spend_no_retry() {
    let (queue, clock) = queue().await;
    let job = enqueue_defer_often(&queue, 50).await.expect("stored");
    let worker = queue.worker().tasks([task_defer_often()]).start().await.expect("it starts");
    for deferrals in 1..=50 {
        let status =
            flexiq_tests::until(&queue, job.id(), "one more deferral", |job| job.deferrals == deferrals)
                .await;
        assert_eq!(status.state, State::Scheduled(ScheduledReason::Deferral));
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(soon("it succeeds", job.result()).await.expect("it succeeded"), 50);
    let status = job.status().await.expect("it is kept");
    assert_eq!((status.state, status.failures, status.deferrals), (State::Succeeded, 0, 50));
    assert_eq!(status.runs, 51);
    worker.shutdown().await.expect("it stops");
}

// https://github.com/oban-bg/oban/issues/476: after many deferrals the first failure waited for days.
#[tokio::test]
async fn the_back_off_ignores_deferrals_between_failures() {
    let (queue, clock) = queue().await;
    let job = enqueue_follow(&queue, "dddfdddfs".into()).await.expect("stored");
    let worker = queue.worker().tasks([task_follow()]).start().await.expect("it starts");
    let mut now = START;
    let mut waits = Vec::new();
    for run in 1..=8 {
        let status = flexiq_tests::until(&queue, job.id(), "one more run", |job| {
            job.runs == run && matches!(job.state, State::Scheduled(_))
        })
        .await;
        if status.state == State::Scheduled(ScheduledReason::Retry) {
            waits.push(wait_of(&status, now));
        }
        let wait = wait_of(&status, now);
        clock.advance(wait);
        now = now + wait;
    }
    let status = ended(&queue, job.id()).await;
    assert_eq!((status.state, status.failures, status.deferrals), (State::Succeeded, 2, 6));
    // 1 s and 2 s, each ± 25 %: what the first and the second failure wait without any deferral.
    assert!((750..=1250).contains(&waits[0].as_millis()), "{waits:?}");
    assert!((1500..=2500).contains(&waits[1].as_millis()), "{waits:?}");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_value_comes_back_typed_from_async_and_plain_tasks() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    let tasks = [task_add(), task_add_plainly()];
    let worker = queue.worker().tasks(tasks).state(journal.clone()).start().await.expect("it starts");
    let first = enqueue_add(&queue, 40, 2).await.expect("stored");
    let second = enqueue_add_plainly(&queue, 20, 1).await.expect("stored");
    assert_eq!(soon("the async task", first.result()).await.expect("it succeeded"), 42);
    assert_eq!(soon("the plain task", second.result()).await.expect("it succeeded"), 21);
    assert_eq!(journal.lines(), ["flexiq-plain"]);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_panic_is_a_failure_with_its_message_and_the_worker_goes_on() {
    let (queue, _clock) = queue().await;
    let tasks = [task_explode(), task_explode_plainly(), task_add()];
    let worker = queue.worker().tasks(tasks).start().await.expect("it starts");
    let panicking = [
        enqueue_explode(&queue).await.expect("stored"),
        enqueue_explode_plainly(&queue).await.expect("stored"),
    ];
    for (job, message) in panicking.iter().zip(["panicked: the fuse was short", "panicked: bang"]) {
        let status = ended(&queue, job.id()).await;
        assert_eq!((status.state, status.failures), (State::Dead(DeadReason::Failures), 1));
        assert_eq!(status.last_error.as_deref(), Some(message));
    }
    let sum = enqueue_add(&queue, 1, 1).await.expect("stored");
    assert_eq!(soon("the worker goes on", sum.result()).await.expect("it succeeded"), 2);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn never_ends_a_job_at_its_first_failure_with_its_story() {
    let (queue, _clock) = queue().await;
    let worker = queue.worker().tasks([task_give_up()]).start().await.expect("it starts");
    let job = enqueue_give_up(&queue).await.expect("stored");
    let error = soon("it dies", job.result()).await.expect_err("it is dead");
    let flexiq::Error::JobFailed(story) = &error else { panic!("{error}") };
    assert_eq!((story.state, story.failures), (State::Dead(DeadReason::Never), 1));
    assert_eq!(story.last_error.as_deref(), Some("the account is closed"));
    assert_eq!(
        error.to_string(),
        format!(
            "job {} of task give_up is dead: its task said that no retry helps; last error: the account is closed",
            job.id()
        )
    );
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_failure_may_choose_its_own_delay() {
    let (queue, _clock) = queue().await;
    let worker = queue.worker().tasks([task_fail_for()]).start().await.expect("it starts");
    let job = enqueue_fail_for(&queue, 90).await.expect("stored");
    let status = scheduled(&queue, job.id()).await;
    assert_eq!((status.state, status.failures), (State::Scheduled(ScheduledReason::Retry), 1));
    assert_eq!(wait_of(&status, START), Duration::from_secs(90));
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_deferral_may_name_its_moment() {
    let (queue, _clock) = queue().await;
    let worker = queue.worker().tasks([task_wait_until()]).start().await.expect("it starts");
    let moment = START + Duration::from_secs(3_600);
    let job = enqueue_wait_until(&queue, moment.as_millis().unsigned_abs()).await.expect("stored");
    let status = scheduled(&queue, job.id()).await;
    assert_eq!(Timestamp::from(status.due_at), moment);
    assert_eq!((status.failures, status.deferrals), (0, 1));
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_deferral_past_its_own_budget_ends_the_job_in_a_state_that_says_so() {
    let (queue, clock) = queue().await;
    let worker = queue.worker().tasks([task_defer_for_ever()]).start().await.expect("it starts");
    let job = enqueue_defer_for_ever(&queue).await.expect("stored");
    for deferrals in 1..=2 {
        flexiq_tests::until(&queue, job.id(), "one more deferral", |job| {
            job.deferrals == deferrals && job.state == State::Scheduled(ScheduledReason::Deferral)
        })
        .await;
        clock.advance(Duration::from_secs(1));
    }
    let status = ended(&queue, job.id()).await;
    assert_eq!((status.state, status.deferrals, status.failures), (State::Dead(DeadReason::Deferrals), 3, 0));
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_timeout_drops_an_async_run_and_counts_a_failure() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let worker = queue.worker().tasks([task_hang()]).state(journal.clone()).start().await.expect("it starts");
    let job = enqueue_hang(&queue).await.expect("stored");
    journal.wait_for("hanging", 1).await;
    clock.advance(Duration::from_secs(30));
    let status = ended(&queue, job.id()).await;
    assert_eq!((status.state, status.failures), (State::Dead(DeadReason::Failures), 1));
    assert_eq!(status.last_error.as_deref(), Some("timeout: it ran longer than 30s"));
    assert_eq!(journal.lines(), ["hanging", "dropped"]);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_plain_function_that_outlives_its_timeout_is_told_and_counts_a_failure_when_it_returns() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let worker =
        queue.worker().tasks([task_hang_plainly()]).state(journal.clone()).start().await.expect("it starts");
    let job = enqueue_hang_plainly(&queue).await.expect("stored");
    journal.wait_for("hanging", 1).await;
    clock.advance(Duration::from_secs(30));
    let status = ended(&queue, job.id()).await;
    assert_eq!((status.state, status.failures), (State::Dead(DeadReason::Failures), 1));
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_payload_that_does_not_fit_dies_naming_its_parameter() {
    let (queue, _clock) = queue().await;
    let worker = queue.worker().tasks([task_add()]).start().await.expect("it starts");
    let arguments = serde_json::json!({ "left": "forty", "right": 2 });
    let job = queue.enqueue_by_name("add", arguments).await.expect("names are checked, types are not");
    let status = ended(&queue, job.id()).await;
    assert_eq!(status.state, State::Dead(DeadReason::Decode));
    let error = status.last_error.expect("it says why");
    assert!(error.contains("`left`") || error.contains("left"), "{error}");
    assert!(!error.contains("forty"), "a payload is not shown: {error}");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn what_a_call_sets_stands_above_what_its_task_says() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let worker = queue
        .worker()
        .tasks([task_hang(), task_give_up(), task_follow()])
        .state(journal.clone())
        .start()
        .await
        .expect("it starts");
    let hanging = enqueue_hang(&queue).timeout(Duration::from_secs(5)).max_retries(1).await.expect("stored");
    journal.wait_for("hanging", 1).await;
    clock.advance(Duration::from_secs(5));
    let status = scheduled(&queue, hanging.id()).await;
    assert_eq!((status.state, status.failures), (State::Scheduled(ScheduledReason::Retry), 1));
    let failing = enqueue_follow(&queue, "f".into()).max_retries(0).await.expect("stored");
    assert_eq!(ended(&queue, failing.id()).await.state, State::Dead(DeadReason::Failures));
    worker.shutdown().await.expect("it stops");
}
