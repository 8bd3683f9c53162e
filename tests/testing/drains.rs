//! A drain runs all that may run now, and nothing else; then it says what happened and what is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flexiq::testing::{TestQueue, assert_enqueued};
use flexiq::{Cause, Context, Retry, ScheduledReason, State};

use super::{HOUR, SECOND};

#[derive(Clone, Default)]
struct Counter(Arc<AtomicU32>);

impl Counter {
    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[flexiq::task(queue = "drains")]
async fn add(#[state] counter: Counter) {
    counter.0.fetch_add(1, Ordering::Relaxed);
}

#[flexiq::task(queue = "drains")]
fn add_plainly(#[state] counter: Counter) {
    counter.0.fetch_add(1, Ordering::Relaxed);
}

#[flexiq::task(any_queue)]
async fn add_anywhere(#[state] counter: Counter) {
    counter.0.fetch_add(1, Ordering::Relaxed);
}

/// Enqueues the next of a chain until nothing is left, each in a queue of its own.
#[flexiq::task(any_queue)]
async fn chain(#[context] context: Context, left: u32) -> flexiq::Result<()> {
    if left > 0 {
        enqueue_chain(context.queue(), left - 1).queue(format!("chain-{left}")).await?;
    }
    Ok(())
}

#[flexiq::task(queue = "drains", max_concurrent = 1, max_in_flight_per_task = 1)]
async fn one_by_one() {
    tokio::task::yield_now().await;
}

/// Two queues that share a limit.
#[flexiq::task(queue = "calls")]
async fn call(#[context] context: Context) -> Result<(), Retry> {
    let _permit = context.limit("partner").concurrency(1).acquire().await?;
    tokio::task::yield_now().await;
    Ok(())
}

#[flexiq::task(queue = "mails")]
async fn mail(#[context] context: Context) -> Result<(), Retry> {
    let _permit = context.limit("partner").concurrency(1).acquire().await?;
    tokio::task::yield_now().await;
    Ok(())
}

#[tokio::test]
async fn nothing_runs_before_a_drain_and_all_that_may_in_it() {
    let counter = Counter::default();
    let test = TestQueue::builder().state(counter.clone()).await;
    for _ in 0..150 {
        enqueue_add(test.queue()).await.expect("stored");
    }
    enqueue_add_plainly(test.queue()).await.expect("stored");
    enqueue_add(test.queue()).delay(SECOND).await.expect("stored");
    assert_eq!(counter.count(), 0);
    let told = test.drain().await.expect_all_succeeded();
    assert_eq!((counter.count(), told.succeeded(), told.pending), (151, 151, 1));
    let [waiting] = &told.waiting[..] else { panic!("one waits: {told}") };
    assert_eq!(waiting.job().state, State::Scheduled(ScheduledReason::Delay));
    enqueue_add(test.queue()).await.expect("stored");
    assert_eq!(counter.count(), 151, "not before the next drain");
    assert_eq!(test.drain().await.succeeded(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_on_many_threads_misses_nothing() {
    let counter = Counter::default();
    let test = TestQueue::builder().state(counter.clone()).await;
    for round in 1..=50 {
        for _ in 0..5 {
            enqueue_add(test.queue()).await.expect("stored");
            enqueue_add_plainly(test.queue()).await.expect("stored");
        }
        let told = test.drain().await.expect_all_succeeded();
        assert_eq!((told.succeeded(), counter.count()), (10, round * 10));
    }
}

#[tokio::test]
async fn what_a_body_enqueues_runs_in_the_same_drain_in_whichever_queue_it_lies() {
    let test = TestQueue::builder().await;
    enqueue_chain(test.queue(), 5).await.expect("stored");
    let told = test.drain().await.expect_all_succeeded();
    assert_eq!((told.succeeded(), told.pending), (6, 0));
    assert_enqueued!(test, 6 of chain);
    assert_enqueued!(test, chain, left == 0);
}

#[tokio::test]
async fn a_queue_that_nobody_knew_is_served_from_the_next_drain_on() {
    let test = TestQueue::builder().state(Counter::default()).await;
    test.drain().await;
    enqueue_add_anywhere(test.queue()).queue("elsewhere").await.expect("stored");
    assert_eq!(test.drain().await.expect_all_succeeded().succeeded(), 1);
}

#[tokio::test]
async fn a_cap_lets_one_drain_run_all_one_after_the_other() {
    let test = TestQueue::builder().await;
    for _ in 0..5 {
        enqueue_one_by_one(test.queue()).await.expect("stored");
    }
    assert_eq!(test.drain().await.expect_all_succeeded().succeeded(), 5);
}

#[tokio::test]
async fn whoever_is_called_out_of_the_line_of_a_named_limit_runs_in_the_same_drain() {
    let test = TestQueue::builder().await;
    for _ in 0..10 {
        enqueue_call(test.queue()).await.expect("stored");
        enqueue_mail(test.queue()).await.expect("stored");
    }
    let told = test.drain().await.expect_all_succeeded();
    assert_eq!((told.succeeded(), told.pending), (20, 0));
    assert!(told.deferred() <= 20, "{} stood in line", told.deferred());
}

#[tokio::test]
async fn what_waits_says_why() {
    let test = TestQueue::builder().state(Counter::default()).await;
    test.queue().pause_task("add").await.expect("it is paused");
    enqueue_add(test.queue()).await.expect("stored");
    let told = test.drain().await;
    let [waiting] = &told.waiting[..] else { panic!("one waits: {told}") };
    assert!(matches!(waiting.why.causes[..], [Cause::Paused { .. }]), "{told}");
    test.queue().resume_task("add").await.expect("it is resumed");
    assert_eq!(test.drain().await.succeeded(), 1);
}

#[tokio::test]
async fn a_task_without_its_state_is_left_waiting_and_says_what_it_lacks() {
    let test = TestQueue::builder().await;
    enqueue_add(test.queue()).await.expect("stored");
    let told = test.drain().await;
    let [waiting] = &told.waiting[..] else { panic!("one waits: {told}") };
    assert_eq!(told.runs, []);
    assert!(matches!(waiting.why.causes[..], [Cause::NoWorker { .. }]), "{told}");
    let told = told.to_string();
    assert!(
        told.contains("The test was not given counter: ") && told.contains("Counter of task add"),
        "{told}"
    );
}

#[tokio::test]
#[should_panic = "missing state: counter: testing::drains::Counter of task add; the worker was given none"]
async fn a_task_that_is_named_and_lacks_its_state_is_refused() {
    let _test = TestQueue::builder().tasks([task_add()]).await;
}

#[tokio::test]
async fn tasks_that_are_not_named_do_not_run() {
    let test = TestQueue::builder().state(Counter::default()).tasks([task_add()]).await;
    enqueue_add(test.queue()).await.expect("stored");
    enqueue_add_plainly(test.queue()).await.expect("stored");
    let told = test.drain().await;
    assert_eq!((told.succeeded(), told.pending), (1, 1));
    assert_eq!(told.waiting[0].job().task, "add_plainly");
}

#[tokio::test]
async fn two_tests_in_one_process_do_not_know_each_other() {
    let (one, other) = (Counter::default(), Counter::default());
    let test = TestQueue::builder().state(one.clone()).await;
    let beside = TestQueue::builder().state(other.clone()).await;
    enqueue_add(test.queue()).await.expect("stored");
    enqueue_add(beside.queue()).delay(HOUR).await.expect("stored");
    let before = beside.now();
    let (told, beside_told) = tokio::join!(test.advance(HOUR), beside.drain());
    assert_eq!((told.succeeded(), beside_told.succeeded()), (1, 0));
    assert_eq!((one.count(), other.count()), (1, 0));
    assert_eq!(beside.now(), before);
    assert_eq!(beside.advance(HOUR).await.succeeded(), 1);
}

#[tokio::test]
async fn a_drain_that_is_dropped_starts_nothing_more() {
    let counter = Counter::default();
    let test = TestQueue::builder().state(counter.clone()).await;
    {
        let mut drain = Box::pin(test.drain());
        let polled = tokio::time::timeout(Duration::ZERO, &mut drain).await;
        assert!(polled.is_err(), "it cannot have ended at its first poll");
    }
    enqueue_add(test.queue()).await.expect("stored");
    for _ in 0..3 {
        // Answered after all that the worker may have asked before.
        test.queue().counts().await.expect("it answers");
        tokio::task::yield_now().await;
    }
    assert_eq!(counter.count(), 0);
    assert_eq!(test.drain().await.succeeded(), 1);
}
