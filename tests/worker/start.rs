//! What a worker refuses at its start, all at once and saying what to write.

use flexiq::{Error, Queue, Task};
use flexiq_tests::{Journal, soon};

use super::queue;

#[derive(Clone)]
struct Renderer;

#[derive(Clone)]
struct Mailer;

#[flexiq::task(queue = "reports")]
async fn build(#[state] _renderer: Renderer, #[state] _mailer: Mailer) {}

#[flexiq::task(queue = "reports")]
async fn publish(#[state] _renderer: Renderer) {}

#[flexiq::task(queue = "emails")]
async fn send() {}

#[flexiq::task(cron = "0 * * * *", unique = "args")]
async fn hourly() {}

#[flexiq::task(queue = "new_home")]
async fn dispatch() {}

mod elsewhere {
    #[flexiq::task(name = "send")]
    pub(super) async fn also_send() {}
}

async fn refused(queue: &Queue, tasks: impl IntoIterator<Item = Task>) -> Error {
    match queue.worker().tasks(tasks).start().await {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn missing_states_are_named_all_at_once_with_what_was_given() {
    let (queue, _clock) = queue().await;
    let builder = queue.worker().tasks([task_build(), task_publish(), task_send()]).state(Journal::default());
    let error = builder.start().await.map(drop).expect_err("three states are missing");
    let Error::MissingState { missing, given } = &error else { panic!("{error}") };
    assert_eq!(missing.len(), 3, "{missing:?}");
    assert!(
        missing[0].ends_with("Renderer of task build") && missing[2].ends_with("of task publish"),
        "{missing:?}"
    );
    assert_eq!(given, &["flexiq_tests::journal::Journal"]);
}

#[tokio::test]
async fn a_cron_beside_unique_is_not_built_and_is_refused_by_worker_and_enqueue() {
    let (queue, _clock) = queue().await;
    for error in
        [refused(&queue, [task_hourly()]).await, enqueue_hourly(&queue).await.expect_err("not built")]
    {
        let Error::NotBuilt { task, argument } = &error else { panic!("{error}") };
        assert_eq!((task.as_str(), argument.as_str()), ("hourly", "cron beside unique"));
    }
    assert!(queue.counts().await.expect("counted").is_empty(), "nothing was stored");
}

#[tokio::test]
async fn two_tasks_of_one_name_are_refused_naming_both_places() {
    let (queue, _clock) = queue().await;
    let error = refused(&queue, [task_send(), elsewhere::task_also_send()]).await.to_string();
    assert!(error.contains("worker/start.rs:") && error.contains("name = \"…\""), "{error}");
    assert_eq!(error.matches("start.rs:").count(), 2, "{error}");
}

#[tokio::test]
async fn a_worker_without_tasks_says_how_to_link_them() {
    let (queue, _clock) = queue().await;
    let error = refused(&queue, []).await.to_string();
    assert!(error.contains("use your_tasks as _;"), "{error}");
}

#[tokio::test]
async fn an_unknown_queue_is_refused_naming_the_nearest() {
    let (queue, _clock) = queue().await;
    let builder = queue.worker().tasks([task_send()]).queues(["email"]);
    let error = builder.start().await.map(drop).expect_err("there is no such queue");
    assert_eq!(error.to_string(), "unknown queue \"email\"; did you mean \"emails\"?");
}

#[tokio::test]
async fn a_worker_serves_only_the_queues_it_was_told() {
    let (queue, _clock) = queue().await;
    let worker = queue.worker().tasks([task_send(), task_publish()]).queues(["emails"]).start().await;
    worker.expect("publish is not served, so its state is not missed").shutdown().await.expect("it stops");
}

#[tokio::test]
async fn jobs_of_a_task_that_has_moved_still_run_from_their_old_queue() {
    let (queue, _clock) = queue().await;
    let id = flexiq::JobId::new();
    let name = |text| flexiq::internals::Name::new("test", text).expect("a name");
    // As an older version stored it, when the task had another home.
    let job = flexiq::internals::NewJob {
        id,
        task: name("dispatch"),
        partition: String::new(),
        max_pending_per_partition: None,
        payload: flexiq::internals::Payload { codec: 0, bytes: b"{}".to_vec() },
        priority: 0,
        due: flexiq::internals::Due::NOW,
        expires: None,
        outset: flexiq::internals::Outset::default(),
        unique: None,
        is_given: true,
    };
    let batch = flexiq::internals::Enqueue {
        queue: name("old_home"),
        jobs: vec![job],
        max_pending: None,
        producer: None,
    };
    queue.below().enqueue(batch).await.expect("stored");
    let builder = queue.worker().tasks([task_dispatch()]);
    soon("it runs", builder.run_until_idle()).await.expect("it ends");
    assert_eq!(queue.status(id).await.expect("it is kept").state, flexiq::State::Succeeded);
}

#[tokio::test]
async fn no_room_and_no_lease_are_refused() {
    let (queue, _clock) = queue().await;
    let builder = queue.worker().tasks([task_send()]);
    let error =
        builder.clone().async_concurrency(0).start().await.map(drop).expect_err("no room").to_string();
    assert!(error.starts_with("invalid async_concurrency: 0;"), "{error}");
    let error =
        builder.clone().lease(std::time::Duration::MAX).start().await.map(drop).expect_err("too long");
    assert!(error.to_string().starts_with("invalid lease: "), "{error}");
    let lease = std::time::Duration::from_millis(10);
    let error = builder.lease(lease).start().await.map(drop).expect_err("too short").to_string();
    assert_eq!(error, "invalid lease: 10ms; accepted: 1 s to 24 h");
}
