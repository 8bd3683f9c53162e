//! expire: a job that has not started in time ends as expired, and one that has started in earnest never does.

use flexiq::State;
use flexiq::internals::{Beat, Change, Finish, Lapse, NewJob};
use flexiq::internals::{Due, ScheduledReason, Transition};

use crate::harness::*;

fn expiring(due: u64, expires: u64) -> NewJob {
    NewJob { due: Due::In(secs(due)), expires: Some(secs(expires)), ..job("send") }
}

fn schedule(reason: ScheduledReason, seconds: u64) -> Transition {
    Transition::Schedule { reason, due: Due::In(secs(seconds)), error: None }
}

for_every_store! {
    async fn what_is_given_back_too_late_wakes_a_sleeper_that_sees_to_its_expiry(bench: Bench) {
        for back in [Transition::Release, Transition::PutBack] {
            let id = bench.enqueue(NewJob { expires: Some(secs(1)), ..job("send") }).await;
            let held = bench.claim(bench.living, &["send"], 1).await;
            bench.set_task("send", Change::Paused(true)).await;
            let (worker, wait) = asleep(&bench, &["send"]).await;
            bench.hands.advance(secs(1));
            bench.finish(bench.living, held[0].lease, back).await;
            assert_eq!(woken(wait).await, ["q"]);
            assert!(bench.claim(worker, &["send"], 1).await.is_empty());
            assert_eq!(bench.state(id).await, State::Expired);
            bench.set_task("send", Change::Paused(false)).await;
        }
    }

    async fn a_job_that_is_not_started_in_time_expires(bench: Bench) {
        let id = bench.enqueue(expiring(0, 10)).await;
        assert_eq!(bench.job(id).await.expires_at, Some((START + secs(10)).into()));
        bench.pass(millis(9_999)).await;
        assert_eq!(bench.state(id).await, State::Ready);
        bench.pass(millis(1)).await;
        let job = bench.job(id).await;
        assert_eq!((job.state, job.ended_at), (State::Expired, Some((START + secs(10)).into())));
        assert_eq!(bench.counts("send").await.expired, 1);
    }

    async fn the_time_counts_from_when_it_is_due(bench: Bench) {
        let id = bench.enqueue(expiring(5, 10)).await;
        bench.pass(millis(14_999)).await;
        assert_eq!(bench.state(id).await, State::Ready);
        bench.pass(millis(1)).await;
        assert_eq!(bench.state(id).await, State::Expired);
    }

    async fn an_expired_job_is_not_claimed_even_if_nobody_has_looked(bench: Bench) {
        bench.enqueue(expiring(0, 10)).await;
        bench.enqueue(expiring(5, 5)).await;
        bench.hands.advance(secs(10));
        assert!(bench.claim(bench.living, &["send"], 10).await.is_empty());
        assert_eq!(bench.counts("send").await.expired, 2);
    }

    async fn no_job_of_a_flood_starts_after_it_has_expired(bench: Bench) {
        for _ in 0..3 {
            bench.enqueue_many("q", (0..500).map(|_| expiring(0, 10)).collect()).await;
        }
        let fresh = bench.enqueue(job("send")).await;
        bench.hands.advance(secs(10));
        let mut claimed = Vec::new();
        loop {
            let answer = bench.turn(bench.living, vec![], Some(claim(&["send"], 100))).await;
            claimed.extend(ids(&answer.claimed));
            if !answer.more {
                break;
            }
        }
        assert_eq!(claimed, [fresh]);
        assert_eq!(bench.counts("send").await.expired, 1_500);
    }

    async fn a_running_job_does_not_expire(bench: Bench) {
        let id = bench.enqueue(expiring(0, 5)).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        bench.hands.advance(secs(6));
        bench.beat(bench.living, &[held[0].lease]).await;
        assert_eq!(bench.state(id).await, State::Running);
    }

    async fn a_job_that_failed_or_was_lost_does_not_expire_any_more(bench: Bench) {
        let failed = bench.enqueue(expiring(0, 20)).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        bench.finish(bench.living, held[0].lease, schedule(ScheduledReason::Retry, 60)).await;
        let lost = bench.enqueue(expiring(0, 20)).await;
        let worker = bench.worker().await;
        bench.claim(worker, &["send"], 1).await;
        bench.pass(secs(30)).await;
        assert_eq!(bench.state(failed).await, State::Scheduled(ScheduledReason::Retry));
        assert_eq!(bench.state(lost).await, State::Ready);
        assert_eq!(bench.job(lost).await.expires_at, None);
    }

    async fn a_job_that_was_deferred_or_released_may_still_expire(bench: Bench) {
        let deferred = bench.enqueue(expiring(0, 20)).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        bench.finish(bench.living, held[0].lease, schedule(ScheduledReason::Deferral, 60)).await;
        let released = bench.enqueue(expiring(0, 20)).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        bench.finish(bench.living, held[0].lease, Transition::Release).await;
        bench.pass(secs(20)).await;
        assert_eq!(bench.state(deferred).await, State::Expired);
        assert_eq!(bench.state(released).await, State::Expired);
    }

    async fn a_job_that_is_given_back_when_its_time_is_over_does_not_start(bench: Bench) {
        let finished = bench.enqueue(expiring(0, 5)).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let lapsed = bench.enqueue(expiring(0, 5)).await;
        let worker = bench.worker().await;
        let marked = bench.claim(worker, &["send"], 1).await[0].lease;
        let beat = Beat { worker, lease: LEASE, every: BEAT, leases: vec![(marked, Lapse::Release)], permits: Vec::new(), report: None };
        bench.store.extend(beat).await.expect("the beat is answered");
        for _ in 0..3 {
            bench.hands.advance(BEAT);
            bench.beat(bench.living, &[held[0].lease]).await;
        }
        bench.hands.advance(secs(1));

        let release = Finish::new(held[0].lease, Transition::Release);
        let turn = bench.turn(bench.living, vec![release], Some(claim(&["send"], 10))).await;

        assert!(turn.claimed.is_empty(), "{:?}", turn.claimed);
        assert_eq!(bench.state(finished).await, State::Expired);
        assert_eq!(bench.state(lapsed).await, State::Expired);
    }
}
