//! Producers that would rather wait than be refused: who comes in, when, and what is left of those who give up.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flexiq::internals::ManualClock;
use flexiq::{Effect, Error, JobHandle, Queue, TaskCounts};
use flexiq_tests::{Spy, Verb, soon};
use serde_json::json;
use tokio::task::JoinHandle;

use super::{queue, url};

#[flexiq::task(queue = "narrow")]
async fn press() {}

#[flexiq::task(queue = "narrow", partition_by = account, max_pending_per_partition = 1)]
async fn press_for(account: String) {
    drop(account);
}

const PATIENCE: Duration = Duration::from_secs(30);

/// A queue that takes so many, watched, on a clock that the test moves.
async fn narrow(max_pending: u64) -> (Queue, Arc<Spy>, ManualClock) {
    let (queue, clock) = queue().await;
    let spy = Spy::on(queue.below());
    let queue = Queue::on(spy.clone());
    queue.set_queue_max_pending("narrow", max_pending).await.expect("set");
    (queue, spy, clock)
}

/// A press that surely waits for room.
async fn waiting(queue: &Queue, spy: &Spy) -> JoinHandle<flexiq::Result<JobHandle<()>>> {
    let waits = spy.calls(Verb::Room);
    let call = tokio::spawn(enqueue_press(queue).or_wait(PATIENCE).into_future());
    spy.wait_for(Verb::Room, waits + 1).await;
    call
}

async fn pending(queue: &Queue) -> u64 {
    queue.counts().await.expect("counted").iter().map(TaskCounts::pending).sum()
}

#[tokio::test]
async fn fifty_producers_that_wait_never_pass_max_pending_and_all_get_in_as_it_drains() {
    const MAX_PENDING: u64 = 1_000;
    let queue = Queue::builder(url()).max_pending("narrow", MAX_PENDING).open().await.expect("it opens");
    let producers: Vec<_> = (0..50)
        .map(|producer: usize| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut stored = 0;
                for call in 0..6 {
                    // Singles, and batches of up to 125: more than 1,000 at once.
                    let jobs = if (producer + call).is_multiple_of(2) { 1 } else { 25 * (1 + producer % 5) };
                    let calls = (0..jobs).map(|_| enqueue_press(&queue));
                    match jobs {
                        1 => drop(enqueue_press(&queue).or_wait(PATIENCE).await.expect("it gets in")),
                        _ => drop(
                            calls
                                .fold(queue.batch(), flexiq::Batch::push)
                                .or_wait(PATIENCE)
                                .send()
                                .await
                                .expect("all of it"),
                        ),
                    }
                    stored += jobs;
                }
                stored
            })
        })
        .collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let sampler = tokio::spawn({
        let (queue, is_over) = (queue.clone(), is_over.clone());
        async move {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(pending(&queue).await);
            }
            most
        }
    });
    let full = async { while pending(&queue).await < MAX_PENDING - 125 {} };
    soon("the queue fills up", full).await;
    let worker = queue.worker().tasks([task_press()]).start().await.expect("it starts");
    let mut stored = 0;
    for producer in producers {
        stored += soon("all get in", producer).await.expect("no panic");
    }
    is_over.store(true, Ordering::Relaxed);
    let most = sampler.await.expect("no panic");
    assert!(most <= MAX_PENDING, "{most} were pending");
    let succeeded = async || {
        let counts = queue.counts().await.expect("counted");
        counts.iter().map(|counts| counts.succeeded).sum::<u64>()
    };
    soon("all run", async { while succeeded().await < stored as u64 {} }).await;
    worker.shutdown().await.expect("it stops");
    assert_eq!(succeeded().await, stored as u64);
    println!("{stored} jobs, at most {most} pending");
}

#[tokio::test]
async fn a_producer_that_waits_asks_once_when_there_is_room_and_every_ten_seconds() {
    let (queue, spy, clock) = narrow(1).await;
    let first = enqueue_press(&queue).await.expect("there is room");
    let call = waiting(&queue, &spy).await;
    let asked = spy.calls(Verb::Enqueue);
    for beat in 1..=2 {
        clock.advance(Duration::from_secs(10));
        spy.wait_for(Verb::Room, 1 + beat).await;
        assert_eq!(spy.calls(Verb::Enqueue), asked + beat);
    }
    first.cancel().await.expect("cancelled");
    let second = soon("it is told", call).await.expect("no panic").expect("there is room");
    assert_eq!(spy.calls(Verb::Enqueue), asked + 3);
    assert!(!second.is_duplicate());
}

#[tokio::test]
async fn a_wait_ends_with_its_time_and_nothing_is_stored_or_kept() {
    let (queue, spy, clock) = narrow(1).await;
    let first = enqueue_press(&queue).await.expect("there is room");
    let call = waiting(&queue, &spy).await;
    for beat in 1..=2 {
        clock.advance(Duration::from_secs(10));
        spy.wait_for(Verb::Room, 1 + beat).await;
    }
    clock.advance(Duration::from_millis(9_999));
    first.status().await.expect("the store answers");
    assert!(!call.is_finished());
    clock.advance(Duration::from_millis(1));
    let error = soon("it gives up", call).await.expect("no panic").expect_err("it is full");
    assert!(matches!(error, Error::QueueFull { max_pending: 1, pending: 1, .. }), "{error}");
    first.cancel().await.expect("cancelled");
    let plain = async { while enqueue_press(&queue).await.is_err() {} };
    soon("the place is given up", plain).await;
    assert_eq!(pending(&queue).await, 1);
}

#[tokio::test]
async fn no_time_to_wait_is_a_refusal_at_once() {
    let (queue, _spy, _clock) = narrow(1).await;
    enqueue_press(&queue).or_wait(Duration::ZERO).await.expect("there is room");
    let error = enqueue_press(&queue).or_wait(Duration::ZERO).await.expect_err("it is full");
    assert!(matches!(error, Error::QueueFull { .. }), "{error}");
}

#[tokio::test]
async fn a_wait_that_is_dropped_keeps_no_room() {
    let (queue, spy, _clock) = narrow(1).await;
    let first = enqueue_press(&queue).await.expect("there is room");
    let dropped = waiting(&queue, &spy).await;
    let behind = waiting(&queue, &spy).await;
    dropped.abort();
    dropped.await.expect_err("it was dropped");
    first.cancel().await.expect("cancelled");
    soon("it is told", behind).await.expect("no panic").expect("there is room");
    assert_eq!(pending(&queue).await, 1);
}

#[tokio::test]
async fn a_store_that_is_away_is_waited_for_and_the_end_tells_what_is_known() {
    let (queue, spy, clock) = narrow(1).await;
    let first = enqueue_press(&queue).await.expect("there is room");
    let (back, gone) = (waiting(&queue, &spy).await, waiting(&queue, &spy).await);
    spy.set_away(true);
    clock.advance(Duration::from_secs(10));
    spy.wait_for(Verb::Room, 4).await;
    assert!(!back.is_finished() && !gone.is_finished());
    spy.set_away(false);
    queue.below().cancel(first.id()).await.expect("cancelled");
    soon("it comes in", back).await.expect("no panic").expect("there is room");
    spy.set_away(true);
    clock.advance(Duration::from_secs(10));
    spy.wait_for(Verb::Room, 5).await;
    clock.advance(Duration::from_secs(10));
    let error = soon("it gives up", gone).await.expect("no panic").expect_err("the store is away");
    assert!(matches!(error, Error::StoreUnavailable { effect: Effect::Unknown, .. }), "{error}");
}

#[tokio::test]
async fn an_answer_that_was_lost_is_found_by_the_next_call() {
    let (queue, spy, clock) = narrow(1).await;
    let first = enqueue_press(&queue).await.expect("there is room");
    let call = waiting(&queue, &spy).await;
    spy.lose_answer(Verb::Enqueue);
    first.cancel().await.expect("cancelled");
    spy.wait_for(Verb::Room, 2).await;
    assert_eq!(pending(&queue).await, 1, "it is stored, and its producer does not know");
    clock.advance(Duration::from_secs(10));
    soon("it asks once more", call).await.expect("no panic").expect("it is there");
    assert_eq!(pending(&queue).await, 1);
}

#[tokio::test]
async fn batches_and_calls_by_name_wait_as_well() {
    let (queue, spy, _clock) = narrow(2).await;
    let jobs = queue.enqueue_many((0..2).map(|_| enqueue_press(&queue))).await.expect("there is room");
    let many = queue.enqueue_many((0..2).map(|_| enqueue_press(&queue).or_wait(PATIENCE)));
    let many = tokio::spawn(many);
    spy.wait_for(Verb::Room, 1).await;
    let batch = queue.batch().push(enqueue_press(&queue)).push(enqueue_press(&queue)).or_wait(PATIENCE);
    let batch = tokio::spawn(batch.send());
    spy.wait_for(Verb::Room, 2).await;
    let named = queue.enqueue_by_name("press", json!({})).or_wait(PATIENCE);
    let named = tokio::spawn(named.into_future());
    spy.wait_for(Verb::Room, 3).await;
    for job in jobs {
        job.cancel().await.expect("cancelled");
    }
    let many = soon("the first come in", many).await.expect("no panic").expect("there is room");
    for job in many {
        job.cancel().await.expect("cancelled");
    }
    let batch = soon("the next come in", batch).await.expect("no panic").expect("there is room");
    batch[0].cancel().await.expect("cancelled");
    soon("the last comes in", named).await.expect("no panic").expect("there is room");
    assert_eq!(pending(&queue).await, 2);
}

#[tokio::test]
async fn a_batch_that_never_fits_is_refused_at_once() {
    let (queue, spy, _clock) = narrow(2).await;
    let calls = (0..3).map(|_| enqueue_press(&queue).or_wait(PATIENCE));
    let error = queue.enqueue_many(calls).await.expect_err("it is larger than the queue");
    assert_eq!(
        error.to_string(),
        "invalid batch that waits for room: 3 new jobs at once; accepted: at most 2, which is max_pending: send \
         several, or raise it"
    );
    assert_eq!((spy.calls(Verb::Room), pending(&queue).await), (0, 0));
}

#[tokio::test]
async fn a_full_partition_is_waited_for_and_its_neighbours_are_not_held_back() {
    let (queue, spy, _clock) = narrow(10).await;
    let first = enqueue_press_for(&queue, "a".into()).await.expect("there is room");
    let call = tokio::spawn(enqueue_press_for(&queue, "a".into()).or_wait(PATIENCE).into_future());
    spy.wait_for(Verb::Room, 1).await;
    enqueue_press_for(&queue, "b".into()).await.expect("another partition");
    first.cancel().await.expect("cancelled");
    soon("it is told", call).await.expect("no panic").expect("there is room");
    assert_eq!(pending(&queue).await, 2);
}

#[test]
fn plain_code_waits_by_blocking() {
    let queue = Queue::builder(url()).max_pending("narrow", 1).open().blocking().expect("it opens");
    let first = enqueue_press(&queue).blocking().expect("there is room");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| enqueue_press(&queue).or_wait(PATIENCE).blocking());
        first.cancel().blocking().expect("cancelled");
        second.join().expect("no panic").expect("there is room");
    });
}
