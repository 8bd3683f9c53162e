//! Permits of named limits, seen from the worker: renewed with the leases, given back whatever a body does, and never
//! outlived by a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flexiq::internals::{Ask, GiveBack, LeaseId, Name, PermitId};
use flexiq::{Context, Retry, ScheduledReason, State};
use flexiq_tests::{Journal, Verb, soon, until};

use super::{queue, spied};

const LEASE: Duration = Duration::from_secs(10);
const BEAT: Duration = Duration::from_secs(3);
/// Permits that are taken before anyone comes.
const KEEPERS: u32 = 5;

#[derive(Clone, Default)]
struct Release(Arc<AtomicBool>);

struct Told(Journal, &'static str);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

#[flexiq::task]
async fn holder(#[context] context: Context, #[state] journal: Journal) -> Result<(), Retry> {
    let _permit = context.limit("api").concurrency(2).acquire().await?;
    let _told = Told(journal.clone(), "holder: dropped");
    journal.note("holder");
    context.cancelled().await;
    journal.note("holder: told");
    std::future::pending().await
}

#[flexiq::task]
async fn giver(
    #[context] context: Context,
    #[state] journal: Journal,
    #[state] release: Release,
) -> Result<(), Retry> {
    drop(context.limit("api").concurrency(2).acquire().await?);
    journal.note("giver");
    while !release.0.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    journal.note(if context.is_cancelled() { "giver: told" } else { "giver: done" });
    Ok(())
}

/// Never drops its permit.
#[flexiq::task]
async fn forgetful(#[context] context: Context) -> Result<(), Retry> {
    std::mem::forget(context.limit("one").concurrency(1).acquire().await?);
    Ok(())
}

#[flexiq::task]
async fn brief(#[context] context: Context) -> Result<(), Retry> {
    let _permit = context.limit("five").concurrency(KEEPERS).acquire().await?;
    Ok(())
}

#[tokio::test]
async fn a_run_that_holds_a_permit_is_fenced_before_its_lease_can_end_and_one_that_gave_it_back_goes_on() {
    let (queue, spy, clock) = spied().await;
    let (journal, release) = (Journal::default(), Release::default());
    let builder = queue.worker().tasks([task_holder(), task_giver()]).lease(LEASE);
    let worker = builder.state(journal.clone()).state(release.clone()).start().await.expect("it starts");
    enqueue_holder(&queue).await.expect("stored");
    enqueue_giver(&queue).await.expect("stored");
    journal.wait_for("holder", 1).await;
    journal.wait_for("giver", 1).await;
    let beats = spy.calls(Verb::Extend);
    clock.advance(BEAT);
    spy.wait_for(Verb::Extend, beats + 1).await;
    spy.set_away(true);
    // Two seconds before the lease can end; that it is not earlier is shown beside the leases themselves.
    clock.advance(Duration::from_secs(8));
    journal.wait_for("holder: told", 1).await;
    clock.advance(Duration::from_secs(1));
    journal.wait_for("holder: dropped", 1).await;
    release.0.store(true, Ordering::Relaxed);
    journal.wait_for("giver: done", 1).await;
    spy.set_away(false);
    drop(worker);
}

#[tokio::test]
async fn a_run_whose_permit_others_may_hold_is_dropped_with_its_next_beat_and_its_job_starts_anew() {
    let (queue, spy, clock) = spied().await;
    let journal = Journal::default();
    let worker = queue.worker().tasks([task_holder()]).lease(LEASE).state(journal.clone());
    let worker = worker.start().await.expect("it starts");
    let job = enqueue_holder(&queue).await.expect("stored");
    journal.wait_for("holder", 1).await;
    let ask = Ask {
        permit: PermitId {
            limit: Name::new("limit", "api").expect("a name"),
            key: String::new(),
            lease: LeaseId { job: job.id(), run: 1 },
        },
        queue: Name::new("queue", "default").expect("a name"),
        ready_at: flexiq_tests::START,
        max_concurrent: Some(2),
        rates: Vec::new(),
        lease: LEASE,
    };
    spy.below().give_back(vec![GiveBack { ask, hold: None }]).await.expect("it is taken away");
    clock.advance(BEAT);
    journal.wait_for("holder: dropped", 1).await;
    journal.wait_for("holder", 2).await;
    let job = until(&queue, job.id(), "it runs again", |job| job.runs == 2).await;
    assert_eq!((job.state, job.failures, job.deferrals, job.losses), (State::Running, 0, 0, 0));
    drop(worker);
}

#[tokio::test]
async fn a_permit_is_renewed_for_as_long_as_its_run_holds_it() {
    let (queue, spy, clock) = spied().await;
    let journal = Journal::default();
    let worker = queue.worker().tasks([task_holder()]).lease(LEASE).state(journal.clone());
    let worker = worker.start().await.expect("it starts");
    let jobs = queue.enqueue_many((0..3).map(|_| enqueue_holder(&queue))).await.expect("stored");
    journal.wait_for("holder", 2).await;
    let waiting = async {
        loop {
            for job in &jobs {
                let job = job.status().await.expect("it is stored");
                if job.deferrals == 1 {
                    return job.id;
                }
            }
        }
    };
    let third = soon("one of them waits", waiting).await;
    for _ in 0..10 {
        let beats = spy.calls(Verb::Extend);
        clock.advance(BEAT);
        spy.wait_for(Verb::Extend, beats + 1).await;
    }
    // Whoever gets a permit is called by the step that frees it, and all beats are answered.
    let third = queue.status(third).await.expect("it is stored");
    assert_eq!(third.state, State::Scheduled(ScheduledReason::Limit), "three leases later it has no permit");
    assert_eq!((third.runs, third.deferrals), (1, 1));
    drop(worker);
}

#[tokio::test]
async fn the_end_of_a_run_gives_back_what_its_body_has_not() {
    let (queue, _clock) = queue().await;
    let worker = queue.worker().tasks([task_forgetful()]).start().await.expect("it starts");
    let jobs = queue.enqueue_many((0..5).map(|_| enqueue_forgetful(&queue))).await.expect("stored");
    for job in jobs {
        soon("it gets the one permit", job.result()).await.expect("it succeeded");
    }
    worker.shutdown().await.expect("it stops");
}

/// Holds one of five permits until it is released.
#[flexiq::task]
async fn keeper(
    #[context] context: Context,
    #[state] journal: Journal,
    #[state] release: Release,
) -> Result<(), Retry> {
    let _permit = context.limit("five").concurrency(KEEPERS).acquire().await?;
    journal.note("keeper");
    while !release.0.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The calls of the store that one job costs.
#[derive(Debug)]
struct Cost {
    asks: f64,
    returns: f64,
    turns: f64,
}

/// What each of so many jobs costs that come to a full limit, and are called out of its line.
async fn cost_of_each(jobs: u32) -> Cost {
    let (queue, spy, _clock) = spied().await;
    let (journal, release) = (Journal::default(), Release::default());
    let worker = queue.worker().tasks([task_brief(), task_keeper()]).state(journal.clone());
    let worker = worker.state(release.clone()).start().await.expect("it starts");
    queue.enqueue_many((0..KEEPERS).map(|_| enqueue_keeper(&queue))).await.expect("stored");
    journal.wait_for("keeper", KEEPERS as usize).await;
    let handles = queue.enqueue_many((0..jobs).map(|_| enqueue_brief(&queue))).await.expect("stored");
    let all_wait = async {
        let wait =
            |counts: &flexiq::TaskCounts| counts.task == "brief" && counts.scheduled == u64::from(jobs);
        while !queue.counts().await.expect("it answers").iter().any(wait) {
            tokio::task::yield_now().await;
        }
    };
    soon("all stand in line", all_wait).await;
    release.0.store(true, Ordering::Relaxed);
    for job in &handles {
        soon("it runs", job.result()).await.expect("it succeeded");
        let job = job.status().await.expect("it is kept");
        assert_eq!((job.deferrals, job.runs), (1, 2), "it starts in vain once");
    }
    worker.shutdown().await.expect("it stops");
    let per = |calls: usize, each: u32| calls as f64 / f64::from(each);
    Cost {
        asks: per(spy.calls(Verb::Acquire) - KEEPERS as usize, jobs),
        returns: per(spy.calls(Verb::GiveBack), jobs + KEEPERS),
        turns: per(spy.calls(Verb::Turn), jobs + KEEPERS),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_jobs_behind_a_limit_start_in_vain_once_at_most_and_cost_no_more_calls_than_ten_each() {
    let (few, many) = (cost_of_each(10).await, cost_of_each(10_000).await);
    println!("calls of the store for each of ten jobs: {few:?}, of 10,000: {many:?}");
    assert_eq!(few.asks, 2.0, "it is refused, and then granted");
    assert_eq!(many.asks, few.asks);
    assert!(many.returns <= 1.0, "{} returns of one permit", many.returns);
    assert!(many.turns <= 4.0, "{} turns for two starts and two ends", many.turns);
}
