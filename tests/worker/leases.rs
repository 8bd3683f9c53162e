//! Leases, seen from the worker: renewed whatever the tasks do, and given up when they are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flexiq::internals::{Beat, Hello, Limits, Name, WorkerId};
use flexiq::{Queue, State};
use flexiq_tests::{Journal, Verb, soon, until};

use super::spied;

const LEASE: Duration = Duration::from_secs(10);
const BEAT: Duration = Duration::from_secs(3);

#[derive(Clone, Default)]
struct Release(Arc<AtomicBool>);

/// Holds its runtime's thread and never yields.
#[flexiq::task]
async fn hog(#[state] journal: Journal, #[state] release: Release) {
    journal.note("hogging");
    while !release.0.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

#[flexiq::task]
async fn patient(#[state] journal: Journal) {
    journal.note("patient");
    let _told = Told(journal);
    std::future::pending::<()>().await;
}

#[flexiq::task(max_concurrent = 2)]
async fn capped(#[state] journal: Journal, #[context] context: flexiq::Context) {
    journal.note("capped");
    let _told = Told(journal.clone());
    while !context.is_cancelled() {
        tokio::task::yield_now().await;
    }
    journal.note("told");
    std::future::pending::<()>().await;
}

#[flexiq::task]
async fn uncapped(#[state] journal: Journal, #[state] release: Release, #[context] context: flexiq::Context) {
    journal.note("uncapped");
    while !release.0.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    journal.note(if context.is_cancelled() { "uncapped: told" } else { "uncapped: done" });
}

struct Told(Journal);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}

#[flexiq::task]
async fn count(#[state] journal: Journal) {
    journal.note("ran");
}

/// A worker that only lives: it beats, holds nothing, and reaps.
async fn bystander(queue: &Queue) -> WorkerId {
    let worker = WorkerId::new();
    let hello = Hello {
        worker,
        label: "bystander".into(),
        lease: LEASE,
        queues: vec![(Name::new("queue", "default").expect("a name"), Limits::default())],
        tasks: Vec::new(),
    };
    queue.below().register(hello).await.expect("it registers");
    worker
}

async fn beat(queue: &Queue, worker: WorkerId) {
    let beat =
        Beat { worker, lease: LEASE, every: BEAT, leases: Vec::new(), permits: Vec::new(), report: None };
    queue.below().extend(beat).await.expect("it beats");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_never_yields_keeps_its_lease() {
    let (queue, spy, clock) = spied().await;
    let (journal, release) = (Journal::default(), Release::default());
    let other = bystander(&queue).await;
    // On a runtime of its own, whose only thread the task will hold.
    let worker = std::thread::spawn({
        let builder =
            queue.worker().tasks([task_hog()]).lease(LEASE).state(journal.clone()).state(release.clone());
        move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(builder.run_until_idle())
        }
    });
    let job = enqueue_hog(&queue).await.expect("stored");
    journal.wait_for("hogging", 1).await;
    for _ in 0..10 {
        let beats = spy.calls(Verb::Extend);
        clock.advance(BEAT);
        spy.wait_for(Verb::Extend, beats + 1).await;
        beat(&queue, other).await;
    }
    let status = job.status().await.expect("it is there");
    assert_eq!((status.state, status.runs, status.losses), (State::Running, 1, 0), "after three leases");
    release.0.store(true, Ordering::Relaxed);
    tokio::task::spawn_blocking(move || worker.join())
        .await
        .expect("joined")
        .expect("no panic")
        .expect("it ends");
    let status = job.status().await.expect("it is kept");
    assert_eq!((status.state, status.runs, status.losses), (State::Succeeded, 1, 0));
}

#[tokio::test]
async fn a_run_whose_lease_is_lost_is_dropped_and_changes_nothing() {
    let (queue, spy, clock) = spied().await;
    let journal = Journal::default();
    let worker = queue
        .worker()
        .tasks([task_patient()])
        .lease(LEASE)
        .state(journal.clone())
        .start()
        .await
        .expect("it starts");
    let job = enqueue_patient(&queue).await.expect("stored");
    journal.wait_for("patient", 1).await;
    let other = bystander(&queue).await;
    // The worker's beats are lost for longer than a lease, while another worker lives and reaps.
    spy.set_away(true);
    let store = spy.below();
    for _ in 0..8 {
        clock.advance(Duration::from_secs(2));
        store
            .extend(Beat {
                worker: other,
                lease: LEASE,
                every: BEAT,
                leases: Vec::new(),
                permits: Vec::new(),
                report: None,
            })
            .await
            .expect("it beats");
    }
    let status = until(&queue, job.id(), "it is reaped", |job| job.losses == 1).await;
    assert_eq!((status.state, status.failures), (State::Ready, 0));
    spy.set_away(false);
    let moved = async {
        // The pauses of a worker whose store was away are on the clock too.
        while journal.count("dropped") == 0 || journal.count("patient") < 2 {
            clock.advance(Duration::from_millis(500));
            store
                .extend(Beat {
                    worker: other,
                    lease: LEASE,
                    every: BEAT,
                    leases: Vec::new(),
                    permits: Vec::new(),
                    report: None,
                })
                .await
                .expect("it beats");
            tokio::task::yield_now().await;
        }
    };
    soon("the lost run is dropped, and its job runs again", moved).await;
    let status = until(&queue, job.id(), "it runs again", |job| job.runs >= 2).await;
    assert_eq!(status.failures, 0);
    drop(worker);
}

#[tokio::test]
async fn a_run_that_a_cap_counts_is_fenced_before_its_lease_can_end_and_others_go_on() {
    let (queue, spy, clock) = spied().await;
    let (journal, release) = (Journal::default(), Release::default());
    let builder = queue.worker().tasks([task_capped(), task_uncapped()]).lease(LEASE);
    let worker = builder.state(journal.clone()).state(release.clone()).start().await.expect("it starts");
    let job = enqueue_capped(&queue).await.expect("stored");
    let other = enqueue_uncapped(&queue).await.expect("stored");
    journal.wait_for("capped", 1).await;
    journal.wait_for("uncapped", 1).await;
    // One beat is answered: from before it was sent, the lease lasts.
    let beats = spy.calls(Verb::Extend);
    clock.advance(BEAT);
    spy.wait_for(Verb::Extend, beats + 1).await;
    spy.set_away(true);
    // Two seconds before the lease can end, and one; that neither is earlier is shown beside the leases themselves.
    clock.advance(Duration::from_secs(8));
    journal.wait_for("told", 1).await;
    clock.advance(Duration::from_secs(1));
    journal.wait_for("dropped", 1).await;
    // The lease still stands when the store comes back: nobody calls it lost.
    spy.set_away(false);
    let brought_home = async {
        while journal.count("capped") < 2 {
            clock.advance(Duration::from_millis(50));
            tokio::task::yield_now().await;
        }
    };
    soon("the released job starts again", brought_home).await;
    let status = job.status().await.expect("it is there");
    assert_eq!((status.failures, status.deferrals, status.losses), (0, 0, 0));
    release.0.store(true, Ordering::Relaxed);
    journal.wait_for("uncapped: done", 1).await;
    let status = other.status().await.expect("it is there");
    assert_eq!((status.runs, status.losses), (1, 0));
    drop(worker);
}

#[tokio::test]
async fn a_short_lease_is_fenced_by_parts_of_itself_and_a_renewed_one_not_at_all() {
    let (queue, spy, clock) = spied().await;
    let (journal, lease) = (Journal::default(), Duration::from_secs(2));
    let builder = queue.worker().tasks([task_capped()]).lease(lease).state(journal.clone());
    let worker = builder.start().await.expect("it starts");
    enqueue_capped(&queue).await.expect("stored");
    journal.wait_for("capped", 1).await;
    for _ in 0..10 {
        let beats = spy.calls(Verb::Extend);
        clock.advance(lease.mul_f64(0.3));
        spy.wait_for(Verb::Extend, beats + 1).await;
    }
    assert_eq!(journal.count("told"), 0, "three leases, each renewed");
    spy.set_away(true);
    clock.advance(Duration::from_millis(1_600));
    journal.wait_for("told", 1).await;
    assert_eq!(journal.count("dropped"), 0);
    clock.advance(Duration::from_millis(200));
    journal.wait_for("dropped", 1).await;
    drop(worker);
}

#[tokio::test]
async fn a_fenced_run_is_dropped_also_when_its_lease_is_renewed_after_all() {
    let (queue, spy, clock) = spied().await;
    let journal = Journal::default();
    let builder = queue.worker().tasks([task_capped()]).lease(LEASE).state(journal.clone());
    let worker = builder.start().await.expect("it starts");
    enqueue_capped(&queue).await.expect("stored");
    journal.wait_for("capped", 1).await;
    spy.set_away(true);
    clock.advance(Duration::from_secs(8));
    journal.wait_for("told", 1).await;
    spy.set_away(false);
    let beats = spy.calls(Verb::Extend);
    let renewed = async {
        while spy.calls(Verb::Extend) < beats + 2 || journal.count("dropped") == 0 {
            clock.advance(Duration::from_millis(50));
            tokio::task::yield_now().await;
        }
    };
    soon("it is renewed, and dropped all the same", renewed).await;
    drop(worker);
}

#[tokio::test]
async fn a_turn_whose_answer_was_lost_runs_nothing_twice() {
    for lost in 1..=4 {
        let (queue, spy, clock) = spied().await;
        let journal = Journal::default();
        let worker =
            queue.worker().tasks([task_count()]).state(journal.clone()).start().await.expect("it starts");
        for _ in 0..lost {
            spy.lose_answer(Verb::Turn);
        }
        let job = enqueue_count(&queue).await.expect("stored");
        let ended = async {
            while !job.status().await.expect("it is kept").state.is_ended() {
                clock.advance(Duration::from_millis(100));
                tokio::task::yield_now().await;
            }
        };
        soon("it ends all the same", ended).await;
        let status = job.status().await.expect("it is kept");
        assert_eq!((status.state, status.runs), (State::Succeeded, 1));
        assert_eq!(journal.lines(), ["ran"]);
        drop(worker);
    }
}
