//! How the failures of a job are told.

use std::time::Duration;

use flexiq::{Context, DeadReason, Error, Retry, SetbackKind};
use flexiq_tests::{ended, soon};

use super::queue;

/// Ends each run in another way.
#[flexiq::task(max_retries = 3, retry_backoff = "fixed 1s", timeout = "30s")]
async fn stumble(#[context] context: Context) -> Result<(), Retry> {
    match context.run() {
        1 => Err(Retry::failed("the partner is down", Duration::from_secs(1))),
        2 => panic!("the fuse was short"),
        3 => Err(Retry::after(Duration::from_secs(1))),
        4 => std::future::pending().await,
        _ => Err(Retry::never("the account is closed")),
    }
}

#[flexiq::task(max_deferrals = 0)]
async fn put_off() -> Result<(), Retry> {
    Err(Retry::after(Duration::from_secs(1)))
}

#[flexiq::task]
async fn count_pages(_pages: u64) {}

#[tokio::test]
async fn every_failure_is_told_with_its_kind_and_the_last_is_that_of_the_error() {
    let (queue, clock) = queue().await;
    let worker = queue.worker().tasks([task_stumble()]).start().await.expect("it starts");
    let job = enqueue_stumble(&queue).await.expect("stored");
    let moved = async {
        while !job.status().await.expect("it is there").state.is_ended() {
            clock.advance(Duration::from_millis(500));
            tokio::task::yield_now().await;
        }
    };
    soon("it dies", moved).await;
    let setbacks = job.story().await.expect("it is there").setbacks;
    let seen: Vec<_> =
        setbacks.iter().map(|it| (it.run, it.attempt, it.kind, &*it.message, it.death)).collect();
    assert_eq!(
        seen,
        [
            (1, 1, SetbackKind::Error, "the partner is down", None),
            (2, 2, SetbackKind::Panic, "panicked: the fuse was short", None),
            (4, 3, SetbackKind::Timeout, "timeout: it ran longer than 30s", None),
            (5, 4, SetbackKind::Error, "the account is closed", Some(DeadReason::Never)),
        ]
    );
    assert!(setbacks.is_sorted_by_key(|setback| setback.at));
    let Err(Error::JobFailed(failure)) = job.result().await else { panic!("it is dead") };
    assert_eq!(failure.last_error.as_deref(), Some("the account is closed"));
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_job_that_is_put_off_too_often_and_one_that_does_not_fit_say_what_they_died_of() {
    let (queue, _clock) = queue().await;
    let put_off = enqueue_put_off(&queue).await.expect("stored").id();
    let misfit = queue.enqueue_by_name("count_pages", serde_json::json!({ "pages": "many" }));
    let worker = queue.worker().tasks([task_put_off(), task_count_pages()]).start().await.expect("it starts");
    let misfit = misfit.await.expect("stored").id();
    for (id, kind, death) in [
        (put_off, SetbackKind::Deferral, DeadReason::Deferrals),
        (misfit, SetbackKind::Undecodable, DeadReason::Decode),
    ] {
        ended(&queue, id).await;
        let setbacks = queue.story(id).await.expect("it is there").setbacks;
        assert_eq!(setbacks.len(), 1);
        assert_eq!((setbacks[0].kind, setbacks[0].death), (kind, Some(death)));
    }
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_job_that_nobody_has_stored_has_no_story() {
    let (queue, _clock) = queue().await;
    let id = flexiq::JobId::new();
    let error = queue.story(id).await.expect_err("there is none");
    assert!(matches!(error, Error::UnknownJob(unknown) if unknown == id), "{error}");
}
