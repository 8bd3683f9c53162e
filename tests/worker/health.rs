//! How a worker says it is: idle or stuck, with its store or without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flexiq::internals::ManualClock;
use flexiq::{Queue, Trouble, Worker};
use flexiq_tests::{Journal, Spy, Verb, soon};
use tokio::sync::oneshot;

use super::spied;

const LEASE: Duration = Duration::from_secs(10);
const BEAT: Duration = Duration::from_secs(3);
/// Between two ticks that the pump must take.
const TICK: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
pub(crate) struct Release(Arc<AtomicBool>);

/// Holds its runtime's thread and never yields.
#[flexiq::task]
async fn hold_up(#[state] journal: Journal, #[state] release: Release) {
    journal.note("held up");
    while !release.0.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

/// A worker whose runtime is held up by a task, until it is released.
pub(crate) struct HeldUp {
    pub(crate) worker: Worker,
    spy: Arc<Spy>,
    clock: ManualClock,
    release: Release,
    /// Dropped, it ends the runtime.
    _end: oneshot::Sender<()>,
}

impl HeldUp {
    /// Starts the worker on a runtime of its own, with one thread, which the task holds when this returns.
    pub(crate) async fn start(set: impl FnOnce(flexiq::WorkerBuilder) -> flexiq::WorkerBuilder) -> Self {
        let (queue, spy, clock) = spied().await;
        let (journal, release) = (Journal::default(), Release::default());
        let builder = queue.worker().tasks([task_hold_up()]).lease(LEASE);
        let builder = set(builder).state(journal.clone()).state(release.clone());
        let (started, worker) = oneshot::channel();
        let (_end, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                started.send(builder.start().await.expect("it starts")).expect("it is waited for");
                let _ = ended.await;
            });
        });
        let worker = soon("the worker starts", worker).await.expect("it started");
        enqueue_hold_up(&queue).await.expect("stored");
        journal.wait_for("held up", 1).await;
        Self { worker, spy, clock, release, _end }
    }

    /// Lets time go on, and the heartbeat with it.
    pub(crate) async fn pass(&self, ticks: usize) {
        for _ in 0..ticks {
            let beats = self.spy.calls(Verb::Extend);
            self.clock.advance(TICK);
            self.spy.wait_for(Verb::Extend, beats + 1).await;
        }
    }

    /// Lets the task return.
    pub(crate) fn release(&self) {
        self.release.0.store(true, Ordering::Relaxed);
    }
}

/// A worker with nothing to do.
async fn idle(queue: &Queue) -> Worker {
    let builder = queue.worker().tasks([task_hold_up()]).lease(LEASE);
    builder.state(Journal::default()).state(Release::default()).start().await.expect("it starts")
}

/// Lets the pump, which shares the test's thread, take its tick.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Moves the clock by the longest pause between two tries until this is so. A pause may begin just after the clock was moved:
/// then it is moved once more, much later than any thread needs to come to its turn.
async fn let_time_go_on(clock: &ManualClock, until: impl Future<Output = ()>) {
    tokio::pin!(until);
    settle().await;
    loop {
        clock.advance(Duration::from_secs(2));
        if tokio::time::timeout(Duration::from_millis(300), &mut until).await.is_ok() {
            return;
        }
    }
}

async fn until_it_is(what: &str, worker: &Worker, troubles: &[Trouble]) {
    let look = async {
        while worker.health().troubles() != troubles {
            tokio::task::yield_now().await;
        }
    };
    soon(what, look).await;
}

#[tokio::test]
async fn an_idle_worker_is_live_and_ready_however_long_nothing_happens() {
    let (queue, spy, clock) = spied().await;
    let worker = idle(&queue).await;
    for tick in 0..360 {
        let health = worker.health();
        assert!(health.is_live() && health.is_ready(), "after {tick} ticks: {health}");
        assert_eq!(health.to_string(), "ready");
        let beats = spy.calls(Verb::Extend);
        clock.advance(TICK);
        spy.wait_for(Verb::Extend, beats + 1).await;
        settle().await;
    }
}

#[tokio::test]
async fn a_pump_that_a_task_holds_up_stands_still_and_only_it() {
    let held = HeldUp::start(|builder| builder).await;
    held.pass(3).await;
    assert_eq!(held.worker.health().troubles(), [], "three ticks late is a busy machine");
    held.pass(1).await;
    let health = held.worker.health();
    assert_eq!(health.troubles(), [Trouble::PumpStill(4 * TICK)]);
    assert!(!health.is_live() && !health.is_ready());
    assert_eq!(
        health.to_string(),
        "the pump has stood still for 40 s: does an async task hold up the runtime?"
    );
    held.release();
    until_it_is("the pump comes round again", &held.worker, &[]).await;
}

#[tokio::test]
async fn a_heartbeat_whose_beat_never_ends_stands_still_and_only_it() {
    let (queue, spy, clock) = spied().await;
    let worker = idle(&queue).await;
    spy.swallow(Verb::Extend);
    clock.advance(BEAT);
    spy.wait_for(Verb::Extend, 1).await;
    // Three rounds: each the time to a beat, and twice the five seconds in which a store answers.
    for _ in 0..4 {
        clock.advance(3 * BEAT);
        settle().await;
        assert_eq!(worker.health().troubles(), [], "it may still be answered");
    }
    clock.advance(Duration::from_millis(1));
    let health = worker.health();
    assert_eq!(health.troubles(), [Trouble::HeartbeatStill(Duration::from_millis(39_001))]);
    assert!(!health.is_live() && !health.is_ready());
    assert_eq!(health.to_string(), "the heartbeat has stood still for 39 s");
}

#[tokio::test]
async fn a_worker_whose_store_is_away_is_live_and_not_ready_until_it_is_back() {
    let (queue, spy, clock) = spied().await;
    let worker = idle(&queue).await;
    spy.set_away(true);
    clock.advance(BEAT);
    until_it_is("it knows that its store is away", &worker, &[Trouble::StoreAway]).await;
    // A minute of it is longer than a heartbeat may stand still, and yet no reason to start anew.
    for _ in 0..30 {
        let beats = spy.calls(Verb::Extend);
        let tried = spy.wait_for(Verb::Extend, beats + 1);
        let_time_go_on(&clock, tried).await;
        let health = worker.health();
        assert_eq!(health.troubles(), [Trouble::StoreAway]);
        assert!(health.is_live() && !health.is_ready());
    }
    spy.set_away(false);
    let_time_go_on(&clock, until_it_is("it knows that its store is back", &worker, &[])).await;
}
