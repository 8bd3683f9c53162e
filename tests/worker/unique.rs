//! Jobs of which there is to be one: what the attribute and a call say, and what the handle answers.

use std::sync::Arc;
use std::time::Duration;

use flexiq::internals::{Declaration, Declared, Hello, Limits, Name, WorkerId};
use flexiq::{Error, Queue, ScheduledReason, State};
use flexiq_tests::{Journal, Spy, Verb, soon};
use serde_json::json;
use tokio::sync::Notify;

use super::queue;

#[flexiq::task(unique = "args")]
async fn once(#[state] journal: Journal, month: String, #[default = 1] copies: u32) {
    journal.note(format!("{month} {copies}"));
}

#[flexiq::task(unique_by = *account % 16, unique_until = "start")]
async fn per_shard(#[state] gate: Arc<Notify>, account: u32) {
    let _ = account;
    gate.notified().await;
}

#[flexiq::task]
async fn free(#[state] journal: Journal, text: String) {
    journal.note(text);
}

#[flexiq::task(partition_by = account)]
async fn of_account(account: String, text: String) {
    let _ = (account, text);
}

const WINDOW: Duration = Duration::from_secs(5);

fn text(text: impl Into<String>) -> String {
    text.into()
}

#[tokio::test]
async fn a_task_that_is_unique_by_its_arguments_has_one_job_for_each_until_it_ends() {
    let (queue, _clock) = queue().await;
    let first = enqueue_once(&queue, text("10"), 1).await.expect("stored");
    let again = enqueue_once(&queue, text("10"), 1).await.expect("answered");
    let other = enqueue_once(&queue, text("10"), 2).await.expect("stored");
    assert_eq!((again.id(), again.is_duplicate(), again.is_replaced()), (first.id(), true, false));
    assert!(!first.is_duplicate() && !other.is_duplicate());
    let journal = Journal::default();
    let worker = queue.worker().tasks([task_once()]).state(journal.clone()).start().await.expect("it starts");
    soon("it runs", again.result()).await.expect("it succeeded");
    let next = enqueue_once(&queue, text("10"), 1).await.expect("stored");
    assert!(!next.is_duplicate());
    soon("it runs", next.result()).await.expect("it succeeded");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_key_of_an_expression_is_free_at_the_start_where_the_task_says_so() {
    let (queue, _clock) = queue().await;
    let gate = Arc::new(Notify::new());
    let first = enqueue_per_shard(&queue, 1).await.expect("stored");
    assert!(enqueue_per_shard(&queue, 17).await.expect("answered").is_duplicate());
    let worker =
        queue.worker().tasks([task_per_shard()]).state(gate.clone()).start().await.expect("it starts");
    flexiq_tests::until(&queue, first.id(), "it runs", |job| job.state == State::Running).await;
    let second = enqueue_per_shard(&queue, 33).await.expect("stored");
    assert!(!second.is_duplicate());
    flexiq_tests::until(&queue, second.id(), "it runs", |job| job.state == State::Running).await;
    gate.notify_waiters();
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_key_of_a_call_stands_above_that_of_its_task_and_is_the_tasks_own() {
    let (queue, _clock) = queue().await;
    let once = |month: &str| enqueue_once(&queue, month.into(), 1);
    once("10").unique_key("a").await.expect("stored");
    assert!(once("11").unique_key("a").await.expect("answered").is_duplicate());
    assert!(!once("10").await.expect("stored").is_duplicate(), "its arguments are another key");
    let free = |key: &str| enqueue_free(&queue, key.into()).unique_key(key);
    assert!(!free("a").await.expect("stored").is_duplicate(), "another task");
    assert!(free("a").await.expect("answered").is_duplicate());
    let tuple = enqueue_free(&queue, text("x")).unique_key(&("acme", 7)).await.expect("stored");
    let same = enqueue_free(&queue, text("x")).unique_key(&json!(["acme", 7])).await.expect("answered");
    assert_eq!(tuple.id(), same.id());
}

#[tokio::test]
async fn each_call_of_a_batch_has_a_handle_of_its_own() {
    let (queue, _clock) = queue().await;
    let calls = ["10", "11", "10"].map(|month| enqueue_once(&queue, month.into(), 1));
    let handles = queue.enqueue_many(calls).await.expect("stored");
    let duplicates: Vec<_> = handles.iter().map(|handle| handle.is_duplicate()).collect();
    assert_eq!(duplicates, [false, false, true]);
    assert_eq!(handles[2].id(), handles[0].id());
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_is_no_duplicate_of_itself() {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    queue.set_queue_max_pending("default", 1).await.expect("set");
    let first = enqueue_free(&queue, text("x")).await.expect("there is room");
    let call = tokio::spawn({
        let queue = queue.clone();
        async move { enqueue_once(&queue, text("10"), 1).or_wait(Duration::from_secs(30)).await }
    });
    spy.wait_for(Verb::Room, 1).await;
    spy.lose_answer(Verb::Enqueue);
    first.cancel().await.expect("cancelled");
    spy.wait_for(Verb::Room, 2).await;
    clock.advance(Duration::from_secs(10));
    let job = soon("it is sent again", call).await.expect("no panic").expect("it is there");
    assert!(!job.is_duplicate());
    assert!(enqueue_once(&queue, text("10"), 1).await.expect("found first").is_duplicate());
}

#[tokio::test]
async fn the_last_of_the_calls_that_are_debounced_wins() {
    let (queue, clock) = queue().await;
    let journal = Journal::default();
    let worker = queue.worker().tasks([task_free()]).state(journal.clone()).start().await.expect("it starts");
    let call = |word: &str| enqueue_free(&queue, word.into()).unique_key("doc").debounce(WINDOW);
    let first = call("d").await.expect("stored");
    for word in ["dr", "draft"] {
        clock.advance(Duration::from_secs(2));
        let again = call(word).await.expect("answered");
        assert!(again.is_replaced() && again.id() == first.id());
    }
    assert_eq!(first.status().await.expect("there").state, State::Scheduled(ScheduledReason::Delay));
    clock.advance(WINDOW);
    soon("it runs", first.result()).await.expect("it succeeded");
    assert_eq!(journal.lines(), ["draft"]);
    assert!(!call("next").await.expect("stored").is_duplicate(), "its start has freed the key");
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn the_first_of_the_calls_that_are_throttled_wins() {
    let (queue, clock) = queue().await;
    let call = || enqueue_free(&queue, text("x")).throttle(WINDOW);
    let first = call().await.expect("stored");
    first.cancel().await.expect("cancelled");
    clock.advance(WINDOW - Duration::from_millis(1));
    assert_eq!(call().await.expect("answered").id(), first.id());
    clock.advance(Duration::from_millis(1));
    let second = call().await.expect("stored");
    clock.advance(WINDOW);
    assert_ne!(call().await.expect("stored").id(), second.id(), "although the second still waits");
}

#[tokio::test]
async fn without_a_key_calls_of_one_task_or_of_one_partition_are_of_a_kind() {
    let (queue, _clock) = queue().await;
    enqueue_free(&queue, text("x")).debounce(WINDOW).await.expect("stored");
    assert!(enqueue_free(&queue, text("y")).debounce(WINDOW).await.expect("answered").is_replaced());
    let of = |account: &str| enqueue_of_account(&queue, account.into(), text("x")).throttle(WINDOW);
    assert!(!of("acme").await.expect("stored").is_duplicate());
    assert!(!of("brick").await.expect("stored").is_duplicate());
    assert!(of("acme").await.expect("answered").is_duplicate());
}

#[tokio::test]
async fn arguments_of_another_partition_replace_nothing() {
    let (queue, _clock) = queue().await;
    let call =
        |account: &str| enqueue_of_account(&queue, account.into(), text("x")).unique_key("k").replace();
    call("acme").await.expect("stored");
    assert!(call("acme").await.expect("answered").is_replaced());
    let error = call("brick").await.expect_err("a job stays in its partition").to_string();
    assert!(error.contains("make the partition a part of the unique key"), "{error}");
}

#[tokio::test]
async fn a_key_is_held_beyond_the_end_where_a_call_says_so() {
    let (queue, clock) = queue().await;
    let call = || enqueue_once(&queue, text("10"), 1).unique_for(WINDOW);
    let first = call().await.expect("stored");
    first.cancel().await.expect("cancelled");
    assert!(call().await.expect("answered").is_duplicate());
    clock.advance(WINDOW);
    assert!(!call().await.expect("stored").is_duplicate());
}

#[tokio::test]
async fn a_retry_by_hand_is_refused_while_another_has_the_key() {
    let (queue, _clock) = queue().await;
    let first = enqueue_once(&queue, text("10"), 1).await.expect("stored");
    first.cancel().await.expect("cancelled");
    let second = enqueue_once(&queue, text("10"), 1).await.expect("stored");
    let error = queue.retry(first.id()).await.expect_err("the key is taken");
    assert!(
        matches!(error, Error::KeyTaken { job, owner } if (job, owner) == (first.id(), second.id())),
        "{error}"
    );
    second.cancel().await.expect("cancelled");
    assert!(queue.retry(first.id()).await.expect("it is free"));
}

#[tokio::test]
async fn words_that_contradict_each_other_or_lack_a_key_are_refused_saying_what_to_write() {
    let (queue, _clock) = queue().await;
    let free = || enqueue_free(&queue, text("x"));
    let zero = Duration::ZERO;
    for (call, part) in [
        (free().replace(), "a call of .unique_key(..) too"),
        (free().unique_for(WINDOW), "a call of .unique_key(..) too"),
        (free().debounce(WINDOW).throttle(WINDOW), "the last call of a window wins"),
        (free().throttle(WINDOW).unique_key("k").replace(), "throttle alone"),
        (free().throttle(WINDOW).unique_for(WINDOW), "throttle holds the key for its time alone"),
        (free().debounce(WINDOW).unique_for(WINDOW), "debounce alone"),
        (free().debounce(WINDOW).delay(WINDOW), "it says when the job is due"),
        (free().debounce(zero), "a duration above zero"),
        (free().throttle(zero), "a duration above zero"),
        (free().unique_key("k").unique_for(zero), "a duration above zero"),
    ] {
        let error = call.await.expect_err(part);
        assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains(part), "{error}");
    }
    assert!(queue.counts().await.expect("counted").is_empty(), "nothing was stored");
}

/// A store that knows these tasks by what a worker of another program has declared.
async fn knowing(queue: &Queue, tasks: &[flexiq::Task]) {
    let name = |text: &str| Name::new("test", text).expect("a name");
    let declared = |task: &flexiq::Task| {
        let mut declaration = Declaration::from(task.definition());
        declaration.name = format!("other_{}", declaration.name);
        Declared {
            task: name(&declaration.name),
            queue: name(&declaration.queue),
            json: serde_json::to_string(&declaration).expect("plain data"),
            limits: Limits::default(),
            per_partition: Limits::default(),
            schedule: None,
        }
    };
    let hello = Hello {
        worker: WorkerId::new(),
        label: "host:1".into(),
        lease: Duration::from_secs(10),
        queues: Vec::new(),
        tasks: tasks.iter().map(declared).collect(),
    };
    queue.below().register(hello).await.expect("registered");
}

#[tokio::test]
async fn a_task_that_is_known_by_name_alone_is_unique_by_its_arguments_too() {
    let (queue, _clock) = queue().await;
    knowing(&queue, &[task_once(), task_per_shard()]).await;
    let once = |arguments| queue.enqueue_by_name("other_once", arguments);
    let first = once(json!({ "month": "10", "copies": 2 })).await.expect("stored");
    assert!(once(json!({ "copies": 2, "month": "10" })).await.expect("answered").is_duplicate());
    assert!(!once(json!({ "month": "11" })).await.expect("stored").is_duplicate());
    first.cancel().await.expect("cancelled");
    assert!(!once(json!({ "month": "10", "copies": 2 })).await.expect("stored").is_duplicate());

    let shard = || queue.enqueue_by_name("other_per_shard", json!({ "account": 17 }));
    let error = shard().await.expect_err("its expression is not linked").to_string();
    assert!(error.contains("a call of .unique_key(..): the task has unique_by"), "{error}");
    shard().unique_key(&1).await.expect("stored");
    assert!(shard().unique_key(&1).await.expect("answered").is_duplicate());
}

#[tokio::test]
async fn a_task_that_is_linked_makes_its_key_when_it_is_called_by_name() {
    let (queue, _clock) = queue().await;
    let typed = enqueue_per_shard(&queue, 1).await.expect("stored");
    let named = queue.enqueue_by_name("per_shard", json!({ "account": 17 })).await.expect("answered");
    assert_eq!((named.id(), named.is_duplicate()), (typed.id(), true));
}
