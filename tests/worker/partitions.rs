//! Partitions and push-back through the attribute, the handle and a worker.

use std::sync::Arc;
use std::time::Duration;

use flexiq::{Context, Error, Retry, Scope, State};
use flexiq_tests::{Journal, soon, until};
use serde_json::json;
use tokio::sync::Semaphore;

use super::queue;

#[flexiq::task(
    queue = "exports",
    partition_by = account,
    max_concurrent = 4,
    max_concurrent_per_partition = 2,
    max_pending_per_partition = 3
)]
async fn dump(account: String, #[state] journal: Journal, #[state] gate: Gate) {
    journal.note(account);
    gate.0.acquire().await.expect("never closed").forget();
}

/// Lets so many jobs end.
#[derive(Clone)]
struct Gate(Arc<Semaphore>);

#[flexiq::task(queue = "exports", partition_by = (account, month))]
async fn archive(account: u32, month: String) {
    let _ = (account, month);
}

#[flexiq::task(queue = "posts", partition_by = site)]
fn post(
    #[context] context: Context,
    site: String,
    text: String,
    #[state] journal: Journal,
) -> Result<(), Retry> {
    journal.note(format!("{site} {text}"));
    match text.as_str() {
        "429" if context.deferrals() == 0 => Err(context.hold_task(Duration::from_secs(30))),
        "busy" if context.deferrals() == 0 => Err(context.hold_partition(Duration::from_secs(30))),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn each_partition_and_the_task_keep_their_caps_and_one_may_be_set_apart() {
    let (queue, _clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate(Arc::new(Semaphore::new(0))));
    for account in ["acme", "acme", "acme", "brick", "brick", "brick", "coal"] {
        enqueue_dump(&queue, account.into()).await.expect("stored");
    }
    let builder = queue.worker().tasks([task_dump()]).state(journal.clone()).state(gate.clone());
    let worker = builder.start().await.expect("it starts");
    let started = |jobs: usize| {
        let journal = journal.clone();
        async move {
            while journal.lines().len() < jobs {
                tokio::task::yield_now().await;
            }
        }
    };
    soon("four start", started(4)).await;
    let count = |account: &str| journal.count(account);
    assert_eq!((count("acme"), count("brick"), count("coal")), (2, 1, 1), "in turns, four in all");
    queue.set_partition_concurrency("dump", "acme", 1).await.expect("set");
    gate.0.add_permits(4);
    soon("the rest starts", started(7)).await;
    assert_eq!((count("acme"), count("brick"), count("coal")), (3, 3, 1));
    let set = queue.limits().await.expect("it answers");
    let acme = set.iter().find(|standing| standing.scope == Scope::Partition(name("dump"), "acme".into()));
    assert_eq!(acme.expect("it is set").limits().max_concurrent, Some(1));
    queue.clear_partition_concurrency("dump", "acme").await.expect("cleared");
    gate.0.add_permits(10);
    worker.shutdown().await.expect("it stops");
}

fn name(text: &str) -> flexiq::Name {
    flexiq::internals::Name::new("test", text).expect("a name")
}

#[tokio::test]
async fn a_partition_that_is_full_is_told_from_the_others() {
    let (queue, _clock) = queue().await;
    queue.enqueue_many((0..3).map(|_| enqueue_dump(&queue, "acme".into()))).await.expect("there is room");
    let error = enqueue_dump(&queue, "acme".into()).await.expect_err("it is full");
    assert_eq!(
        error.to_string(),
        "partition \"acme\" of task dump is full: 3 pending jobs, and max_pending_per_partition is 3"
    );
    let job = enqueue_dump(&queue, String::new()).await.expect("another has room");
    let job = job.status().await.expect("it is stored");
    assert_eq!(job.partition.as_deref(), Some("\"\""), "the empty key is a partition too");
    let job = enqueue_archive(&queue, 7, "2026-10".into()).await.expect("stored").status().await;
    assert_eq!(job.expect("it is stored").partition.as_deref(), Some("[7,\"2026-10\"]"));
}

#[tokio::test]
async fn all_jobs_of_a_partition_are_cancelled_and_a_paused_one_waits() {
    let (queue, _clock) = queue().await;
    let jobs = queue.enqueue_many((0..3).map(|_| enqueue_dump(&queue, "acme".into()))).await.expect("stored");
    let other = enqueue_dump(&queue, "brick".into()).await.expect("stored");
    queue.pause_partition("dump", "brick").await.expect("paused");
    assert_eq!(queue.cancel_partition("dump", "acme").await.expect("cancelled"), 3);
    for job in &jobs {
        assert_eq!(job.status().await.expect("it is kept").state, State::Cancelled);
    }
    let (journal, gate) = (Journal::default(), Gate(Arc::new(Semaphore::new(9))));
    let builder = queue.worker().tasks([task_dump()]).state(journal.clone()).state(gate);
    let worker = builder.start().await.expect("it starts");
    let free = enqueue_dump(&queue, "coal".into()).await.expect("stored");
    soon("it runs", free.result()).await.expect("it succeeded");
    assert_eq!(other.status().await.expect("it is stored").state, State::Ready);
    queue.resume_partition("dump", "brick").await.expect("resumed");
    soon("it runs", other.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
}

// https://github.com/taskforcesh/bullmq/issues/2193: what became due during the stop was started.
#[tokio::test]
async fn a_body_that_was_told_to_wait_holds_its_task_and_is_first_again() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let refused = enqueue_post(&queue, "a".into(), "429".into()).await.expect("stored");
    let builder = queue.worker().tasks([task_post()]).workers(1).state(journal.clone());
    let worker = builder.start().await.expect("it starts");
    let job = until(&queue, refused.id(), "it is put back", |job| job.deferrals == 1).await;
    assert_eq!((job.state, job.failures), (State::Ready, 0));
    let later = enqueue_post(&queue, "b".into(), "hello".into()).await.expect("stored");
    clock.advance(Duration::from_millis(29_999));
    assert_eq!(later.status().await.expect("it is stored").state, State::Ready);
    clock.advance(Duration::from_millis(1));
    soon("both run", later.result()).await.expect("it succeeded");
    assert_eq!(journal.lines(), ["a 429", "a 429", "b hello"]);
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_held_partition_lets_the_others_run_and_resuming_ends_the_hold() {
    let (queue, _clock) = queue().await;
    let journal = Journal::default();
    let refused = enqueue_post(&queue, "a".into(), "busy".into()).await.expect("stored");
    let builder = queue.worker().tasks([task_post()]).workers(1).state(journal.clone());
    let worker = builder.start().await.expect("it starts");
    until(&queue, refused.id(), "it is put back", |job| job.deferrals == 1).await;
    let other = enqueue_post(&queue, "b".into(), "hello".into()).await.expect("stored");
    soon("it runs", other.result()).await.expect("it succeeded");
    assert_eq!(refused.status().await.expect("it is stored").state, State::Ready);
    queue.resume_partition("post", "a").await.expect("resumed");
    soon("it runs", refused.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_partition_is_asked_for_where_only_the_name_of_the_task_is_known() {
    let (queue, _clock) = queue().await;
    let call = || queue.enqueue_by_name("dump", json!({ "account": "acme" }));
    let job =
        call().await.expect("it is linked, and makes the partition").status().await.expect("it is stored");
    assert_eq!(job.partition.as_deref(), Some("acme"));
    let error = call().partition("other").await.expect_err("it is made of the arguments");
    assert!(error.to_string().contains("no call of .partition(..)"), "{error}");
}

#[tokio::test]
async fn a_partition_of_a_task_that_has_none_is_refused() {
    let (queue, _clock) = queue().await;
    let error = queue.set_partition_concurrency("held", "a", 1).await.expect_err("it has no partitions");
    assert!(
        matches!(&error, Error::Invalid { accepted, .. } if accepted.contains("partition_by")),
        "{error}"
    );
    let error = queue.pause_partition("dmup", "a").await.expect_err("no such task");
    assert!(error.to_string().contains("did you mean \"dump\""), "{error}");
    let error = queue.set_partition_concurrency("dump", "a", 0).await.expect_err("nothing is a pause");
    assert!(error.to_string().contains("use pause_partition"), "{error}");
    let error = queue.set_partition_concurrency("dump", "x".repeat(201), 1).await.expect_err("too long");
    assert!(error.to_string().contains("200 bytes"), "{error}");
}
