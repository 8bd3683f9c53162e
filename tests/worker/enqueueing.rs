//! The producer's side: what is stored, what is refused, and what comes back.

use std::time::Duration;

use flexiq::{Error, JobId, Queue, State};
use flexiq_tests::soon;
use serde_json::json;

use super::{queue, url};

#[flexiq::task]
async fn greet(name: String, #[default = "Hello".to_owned()] greeting: String) -> Result<String, String> {
    Ok(format!("{greeting}, {name}"))
}

#[flexiq::task(queue = "elsewhere")]
async fn far() {}

#[flexiq::task(any_queue)]
async fn roaming() {}

#[tokio::test]
async fn the_same_id_again_stores_nothing_and_answers_the_job_that_is_there() {
    let (queue, _clock) = queue().await;
    let id = JobId::new();
    let first = enqueue_greet(&queue, "Ada".into(), "Hi".into()).id(id).await.expect("stored");
    let second = enqueue_greet(&queue, "Bob".into(), "Hi".into()).id(id).await.expect("answered");
    assert!(!first.is_duplicate() && second.is_duplicate());
    assert_eq!((first.id(), second.id()), (id, id));
    assert_eq!(queue.counts().await.expect("counted")[0].ready, 1);
    let worker = queue.worker().tasks([task_greet()]).start().await.expect("it starts");
    assert_eq!(soon("it runs", second.result()).await.expect("it succeeded"), "Hi, Ada");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn an_id_that_another_task_has_taken_is_refused() {
    let (queue, _clock) = queue().await;
    let id = JobId::new();
    enqueue_greet(&queue, "Ada".into(), "Hi".into()).id(id).await.expect("stored");
    let error = enqueue_roaming(&queue).id(id).await.expect_err("the id is taken");
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

#[tokio::test]
async fn a_batch_is_stored_as_a_whole_or_not_at_all() {
    let (queue, _clock) = queue().await;
    let mixed =
        queue.batch().push(enqueue_greet(&queue, "Ada".into(), "Hi".into())).push(enqueue_roaming(&queue));
    assert_eq!(mixed.send().await.expect("stored").len(), 2);
    let across = queue.batch().push(enqueue_roaming(&queue)).push(enqueue_far(&queue));
    let error = across.send().await.expect_err("two queues");
    assert_eq!(
        error.to_string(),
        "a batch is stored in one queue, and this one names default and elsewhere: send one batch for each"
    );
    let many = queue.enqueue_many((0..10_001).map(|_| enqueue_roaming(&queue)));
    assert!(matches!(many.await.expect_err("too many"), Error::BatchTooLarge { jobs: 10_001, .. }));
    assert_eq!(queue.counts().await.expect("counted").iter().map(|task| task.ready).sum::<u64>(), 2);
}

#[tokio::test]
async fn a_batch_with_one_wrong_call_stores_none() {
    let (queue, _clock) = queue().await;
    let batch = queue.batch().push(enqueue_roaming(&queue)).push(enqueue_roaming(&queue).priority(101));
    let error = batch.send().await.expect_err("a wrong priority").to_string();
    assert_eq!(error, "invalid priority: 101; accepted: -100 to 100, higher first");
    assert!(queue.counts().await.expect("counted").is_empty());
}

#[tokio::test]
async fn a_payload_above_the_limit_is_refused_before_it_is_stored() {
    let queue = Queue::builder(url()).max_payload(64).open().await.expect("it opens");
    let fits = |name: &str| enqueue_greet(&queue, name.into(), "Hi".into());
    // {"name":"…","greeting":"Hi"} has 27 bytes beside the name.
    fits(&"x".repeat(37)).await.expect("64 bytes fit");
    let error = fits(&"x".repeat(38)).await.expect_err("65 bytes do not");
    assert!(matches!(error, Error::PayloadTooLarge { size: 65, limit: 64, .. }), "{error}");
    assert_eq!(queue.counts().await.expect("counted")[0].ready, 1);
}

#[tokio::test]
async fn a_task_that_may_roam_is_stored_where_the_call_says() {
    let (queue, _clock) = queue().await;
    let job = enqueue_roaming(&queue).queue("night").await.expect("stored");
    assert_eq!(job.status().await.expect("it is there").queue, "night");
    let worker =
        queue.worker().tasks([task_roaming()]).queues(["night"]).start().await.expect("it is known now");
    soon("it runs", job.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_linked_task_is_called_by_name_with_its_arguments_checked() {
    let (queue, _clock) = queue().await;
    let worker = queue.worker().tasks([task_greet()]).start().await.expect("it starts");
    let job = queue.enqueue_by_name("greet", json!({ "name": "Ada" })).await.expect("stored");
    assert_eq!(soon("it runs", job.result()).await.expect("it succeeded"), json!("Hello, Ada"));
    for (task, arguments, part) in [
        ("gret", json!({}), "unknown task \"gret\"; did you mean \"greet\"?"),
        ("greet", json!({}), "name"),
        ("greet", json!({ "name": "Ada", "greting": "Hi" }), "greeting"),
        ("greet", json!(["Ada"]), "an object keyed by parameter name"),
    ] {
        let error = queue.enqueue_by_name(task, arguments).await.expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = queue
        .enqueue_by_name("greet", json!({ "name": "Ada" }))
        .queue("night")
        .await
        .expect_err("not its home");
    assert!(error.to_string().contains("any_queue"), "{error}");
    worker.shutdown().await.expect("it stops");
}

#[test]
fn plain_code_enqueues_and_waits_by_blocking() {
    let queue = Queue::open(url()).blocking().expect("it opens");
    let job = enqueue_greet(&queue, "Ada".into(), "Hi".into()).blocking().expect("stored");
    assert_eq!(job.status().blocking().expect("it is there").state, State::Ready);
    let handle = std::thread::spawn({
        let queue = queue.clone();
        move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(queue.worker().tasks([task_greet()]).run_until_idle())
        }
    });
    assert_eq!(job.result().blocking().expect("it succeeded"), "Hi, Ada");
    handle.join().expect("no panic").expect("it ends");
}

#[tokio::test]
async fn blocking_inside_a_runtime_works_too() {
    let queue = Queue::open(url()).blocking().expect("it opens");
    enqueue_roaming(&queue).blocking().expect("stored");
    assert_eq!(queue.counts().blocking().expect("counted")[0].ready, 1);
}

#[tokio::test]
async fn waiting_for_a_result_ends_with_its_time_and_the_job_goes_on() {
    let (queue, clock) = queue().await;
    let job = enqueue_roaming(&queue).await.expect("stored");
    let waiting = tokio::spawn(job.result_within(Duration::from_secs(5)));
    tokio::task::yield_now().await;
    clock.advance(Duration::from_secs(5));
    let error = soon("it gives up", waiting).await.expect("no panic").expect_err("nobody works");
    assert!(matches!(error, Error::NotEnded(id) if id == job.id()), "{error}");
    assert_eq!(job.status().await.expect("it is there").state, State::Ready);
}

#[tokio::test]
async fn a_queue_that_never_was_is_no_url() {
    for (url, part) in [
        ("postgres://localhost", "sqlite://jobs.db"),
        ("redis://:secret@localhost", "redis"),
        ("", "sqlite::memory:"),
    ] {
        let error = Queue::open(url).await.expect_err(url).to_string();
        assert!(error.contains(part), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}
