//! reap: jobs of dead workers start elsewhere, and those of living ones never do.

use flexiq::State;
use flexiq::internals::{Beat, Claimed, Lapse, Wait, WorkerId};
use flexiq::internals::{DeadReason, Transition};

use crate::harness::*;

/// A job that is leased to a worker which then says nothing more.
async fn leased(bench: &Bench) -> (WorkerId, Claimed) {
    let worker = bench.worker().await;
    bench.enqueue(job("send")).await;
    let held = bench.claim(worker, &["send"], 1).await.remove(0);
    (worker, held)
}

for_every_store! {
    async fn a_dead_workers_job_is_ready_again_once_its_lease_is_over(bench: Bench) {
        let (_, held) = leased(&bench).await;
        bench.pass(LEASE - millis(1)).await;
        assert_eq!(bench.state(held.lease.job).await, State::Running);
        bench.pass(millis(1)).await;
        let job = bench.job(held.lease.job).await;
        assert_eq!(job.state, State::Ready);
        assert_eq!((job.runs, job.failures, job.deferrals, job.losses), (1, 0, 0, 1));
        assert_eq!(job.due_at, START.into(), "at its old place");
    }

    async fn a_claim_reaps_without_waiting_for_a_beat(bench: Bench) {
        let (_, held) = leased(&bench).await;
        bench.pass(secs(9)).await;
        bench.hands.advance(secs(1));
        let again = bench.claim(bench.living, &["send"], 1).await;
        assert_eq!((again[0].lease.job, again[0].lease.run, again[0].losses), (held.lease.job, 2, 1));
    }

    async fn a_renewed_lease_is_not_reaped(bench: Bench) {
        let (worker, held) = leased(&bench).await;
        for _ in 0..10 {
            bench.pass(BEAT).await;
            assert!(bench.beat(worker, &[held.lease]).await.lost.is_empty());
        }
        assert_eq!(bench.state(held.lease.job).await, State::Running);
    }

    async fn a_lease_that_is_over_and_not_reaped_may_still_be_finished(bench: Bench) {
        let (worker, held) = leased(&bench).await;
        bench.hands.advance(LEASE * 2);
        assert_eq!(
            bench.finish(worker, held.lease, succeed()).await,
            flexiq::internals::Finished::Done
        );
    }

    async fn a_job_that_loses_more_workers_than_it_is_forgiven_is_dead(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        for losses in 1..=3 {
            let worker = bench.worker().await;
            let mut wanted = claim(&["send"], 1);
            wanted.tasks[0].max_losses = 2;
            assert_eq!(bench.turn(worker, vec![], Some(wanted)).await.claimed.len(), 1);
            bench.pass(LEASE).await;
            assert_eq!(bench.job(id).await.losses, losses);
        }
        let job = bench.job(id).await;
        assert_eq!(job.state, State::Dead(DeadReason::Losses));
        assert_eq!((job.runs, job.failures), (3, 0));
        assert!(job.ended_at.is_some());
    }

    async fn a_lease_that_was_marked_lapses_as_a_release(bench: Bench) {
        let (worker, held) = leased(&bench).await;
        let beat = Beat { worker, lease: LEASE, every: BEAT, leases: vec![(held.lease, Lapse::Release)], permits: Vec::new(), report: None };
        bench.store.extend(beat).await.expect("the beat is answered");
        bench.pass(LEASE).await;
        let job = bench.job(held.lease.job).await;
        assert_eq!((job.state, job.losses), (State::Ready, 0));
    }

    async fn the_mark_of_a_lease_does_not_outlive_it(bench: Bench) {
        let (worker, held) = leased(&bench).await;
        let beat = Beat { worker, lease: LEASE, every: BEAT, leases: vec![(held.lease, Lapse::Release)], permits: Vec::new(), report: None };
        bench.store.extend(beat).await.expect("the beat is answered");
        bench.finish(worker, held.lease, Transition::Release).await;
        bench.claim(worker, &["send"], 1).await;
        bench.pass(LEASE).await;
        assert_eq!(bench.job(held.lease.job).await.losses, 1);
    }

    async fn a_job_that_was_cancelled_is_not_started_again_by_the_reaper(bench: Bench) {
        let (_, held) = leased(&bench).await;
        bench.store.cancel(held.lease.job).await.expect("answers");
        bench.pass(LEASE).await;
        let job = bench.job(held.lease.job).await;
        assert_eq!((job.state, job.losses), (State::Cancelled, 0));
    }

    async fn after_an_outage_the_living_renew_first(bench: Bench) {
        let (worker, held) = leased(&bench).await;
        // Nobody could beat for a minute; then somebody else is the first to come.
        bench.hands.advance(secs(60));
        assert!(bench.claim(bench.living, &["send"], 1).await.is_empty());
        bench.beat(bench.living, &[]).await;
        assert_eq!(bench.state(held.lease.job).await, State::Running);
        assert!(bench.beat(worker, &[held.lease]).await.lost.is_empty());
        bench.pass(secs(9)).await;
        assert_eq!(bench.state(held.lease.job).await, State::Running);
    }

    async fn after_an_outage_what_nobody_renews_is_reaped_one_lease_later(bench: Bench) {
        let (_, held) = leased(&bench).await;
        bench.hands.advance(secs(60));
        bench.beat(bench.living, &[]).await;
        bench.pass(LEASE - millis(1)).await;
        assert_eq!(bench.state(held.lease.job).await, State::Running);
        bench.pass(millis(1)).await;
        assert_eq!(bench.state(held.lease.job).await, State::Ready);
    }

    async fn a_worker_that_starts_after_an_outage_does_not_hide_it(bench: Bench) {
        let (_, held) = leased(&bench).await;
        bench.hands.advance(secs(60));
        let fresh = bench.worker().await;
        assert!(bench.claim(fresh, &["send"], 1).await.is_empty());
        assert_eq!(bench.state(held.lease.job).await, State::Running);
    }

    async fn a_clock_that_jumps_reaps_nobody_for_one_lease(bench: Bench) {
        for jump in [START + secs(3_600), START - secs(3_600)] {
            bench.hands.step_to(START);
            bench.beat(bench.living, &[]).await;
            bench.pass(LEASE).await;
            let (worker, held) = leased(&bench).await;
            bench.hands.step_to(jump);
            bench.beat(bench.living, &[]).await;
            assert!(bench.beat(worker, &[held.lease]).await.lost.is_empty(), "{jump:?}");
            assert_eq!(bench.state(held.lease.job).await, State::Running);
            bench.finish(worker, held.lease, succeed()).await;
        }
    }

    async fn a_clock_that_jumps_forth_and_back_delays_reaping_by_one_lease_only(bench: Bench) {
        let (_, held) = leased(&bench).await;
        bench.hands.step_to(START + secs(3_600));
        bench.beat(bench.living, &[]).await;
        bench.hands.step_to(START + secs(20));
        bench.beat(bench.living, &[]).await;
        assert_eq!(bench.state(held.lease.job).await, State::Running);
        bench.pass(LEASE).await;
        assert_eq!(bench.state(held.lease.job).await, State::Ready);
    }

    async fn after_an_outage_a_sleeper_is_woken_when_reaping_begins_and_not_before(bench: Bench) {
        leased(&bench).await;
        bench.hands.advance(secs(60));
        let sleeper = bench.worker().await;
        assert!(bench.claim(sleeper, &["send"], 1).await.is_empty());
        let wait = Wait { worker: sleeper, queues: vec![(name("q"), [name("send")].into())] };
        let mut wait = bench.store.wait(wait);
        assert!(bench.is_pending(&mut wait).await);
        bench.pass(LEASE - millis(1)).await;
        assert!(bench.is_pending(&mut wait).await);
        bench.hands.advance(millis(1));
        soon(wait).await.expect("woken");
        assert_eq!(bench.claim(sleeper, &["send"], 1).await.len(), 1);
    }

    async fn a_lease_that_lapses_as_a_release_spends_no_budget(bench: Bench) {
        let (_, held) = leased(&bench).await;
        bench.pass(LEASE).await;
        assert_eq!(bench.job(held.lease.job).await.losses, 1);
        // The next worker forgives none, and is shut down while it runs the job.
        let worker = bench.worker().await;
        let mut wanted = claim(&["send"], 1);
        wanted.tasks[0].max_losses = 0;
        let lease = bench.turn(worker, vec![], Some(wanted)).await.claimed[0].lease;
        let beat = Beat { worker, lease: LEASE, every: BEAT, leases: vec![(lease, Lapse::Release)], permits: Vec::new(), report: None };
        bench.store.extend(beat).await.expect("the beat is answered");
        bench.pass(LEASE).await;
        assert_eq!(bench.state(lease.job).await, State::Ready);
    }

    async fn reaping_is_bounded_and_goes_on(bench: Bench) {
        let worker = bench.worker().await;
        bench.enqueue_many("q", (0..250).map(|_| job("send")).collect()).await;
        bench.claim(worker, &["send"], 250).await;
        bench.pass(secs(9)).await;
        bench.hands.advance(secs(1));
        let mut ready = Vec::new();
        for _ in 0..3 {
            bench.beat(bench.living, &[]).await;
            ready.push(bench.counts("send").await.ready);
        }
        assert_eq!(ready, [100, 200, 250]);
    }
}
