//! extend: what a beat answers, and that it keeps house for workers that are full.

use flexiq::internals::Due;
use flexiq::internals::{LeaseId, NewJob};
use flexiq::{JobId, State};

use crate::harness::*;

for_every_store! {
    async fn a_beat_renews_the_leases_that_it_names_and_no_others(bench: Bench) {
        let worker = bench.worker().await;
        bench.enqueue_many("q", vec![job("send"), job("send")]).await;
        let held = bench.claim(worker, &["send"], 2).await;
        bench.pass(secs(6)).await;
        bench.beat(worker, &[held[0].lease]).await;
        bench.pass(secs(6)).await;
        assert_eq!(bench.state(held[0].lease.job).await, State::Running);
        assert_eq!(bench.state(held[1].lease.job).await, State::Ready);
    }

    async fn a_beat_answers_which_leases_are_lost(bench: Bench) {
        let worker = bench.worker().await;
        bench.enqueue_many("q", vec![job("send"), job("send")]).await;
        let held = bench.claim(worker, &["send"], 2).await;
        bench.pass(LEASE).await;
        bench.claim(bench.living, &["send"], 1).await;
        let unknown = LeaseId { job: JobId::new(), run: 1 };
        let leases = [held[0].lease, held[1].lease, unknown];
        assert_eq!(bench.beat(worker, &leases).await.lost, leases);
    }

    async fn a_lost_lease_cannot_be_renewed_into_anothers_run(bench: Bench) {
        let worker = bench.worker().await;
        bench.enqueue(job("send")).await;
        let held = bench.claim(worker, &["send"], 1).await[0].lease;
        bench.pass(LEASE).await;
        let other = bench.worker().await;
        bench.claim(other, &["send"], 1).await;
        bench.pass(secs(6)).await;
        bench.beat(worker, &[held]).await;
        bench.pass(secs(6)).await;
        assert_eq!(bench.job(held.job).await.losses, 2, "the other's lease was not prolonged");
    }

    async fn a_beat_renews_neither_an_older_run_nor_anothers(bench: Bench) {
        let (worker, other) = (bench.worker().await, bench.worker().await);
        bench.enqueue(job("send")).await;
        let old = bench.claim(worker, &["send"], 1).await[0].lease;
        bench.pass(LEASE).await;
        let new = bench.claim(worker, &["send"], 1).await[0].lease;
        assert_eq!(bench.beat(worker, &[old]).await.lost, [old], "the run is over");
        assert_eq!(bench.beat(other, &[new]).await.lost, [new], "the lease is another's");
        assert!(bench.beat(worker, &[new]).await.lost.is_empty());
    }

    async fn a_beat_answers_which_jobs_were_cancelled_as_often_as_it_asks(bench: Bench) {
        let worker = bench.worker().await;
        bench.enqueue_many("q", vec![job("send"), job("send")]).await;
        let held = bench.claim(worker, &["send"], 2).await;
        let leases = [held[0].lease, held[1].lease];
        bench.store.cancel(leases[1].job).await.expect("answers");
        for _ in 0..3 {
            let answer = bench.beat(worker, &leases).await;
            assert_eq!((answer.lost, answer.cancelled), (vec![], vec![leases[1]]));
        }
    }

    async fn a_beat_promotes_what_has_become_due(bench: Bench) {
        let id = bench.enqueue(NewJob { due: Due::In(secs(1)), ..job("send") }).await;
        bench.pass(secs(1)).await;
        assert_eq!(bench.state(id).await, State::Ready);
    }

    async fn promoting_is_bounded_and_goes_on(bench: Bench) {
        for _ in 0..5 {
            let batch = (0..500).map(|_| NewJob { due: Due::In(secs(1)), ..job("send") }).collect();
            bench.enqueue_many("q", batch).await;
        }
        bench.hands.advance(secs(1));
        let mut ready = Vec::new();
        for _ in 0..3 {
            bench.beat(bench.living, &[]).await;
            ready.push(bench.counts("send").await.ready);
        }
        assert_eq!(ready, [1_000, 2_000, 2_500]);
    }

    async fn a_claim_says_that_more_has_become_due_than_it_moved(bench: Bench) {
        for _ in 0..3 {
            let batch = (0..500).map(|_| NewJob { due: Due::In(secs(1)), ..job("send") }).collect();
            bench.enqueue_many("q", batch).await;
        }
        bench.hands.advance(secs(1));
        assert!(bench.turn(bench.living, vec![], Some(claim(&["send"], 1))).await.more);
        assert!(!bench.turn(bench.living, vec![], Some(claim(&["send"], 1))).await.more);
    }
}
