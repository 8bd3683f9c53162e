//! turn: the same number again answers the same and changes nothing.

use flexiq::State;
use flexiq::internals::{Claim, Finish, Finished, LeaseId, Turn, TurnAnswer, WorkerId};
use flexiq::internals::{Due, ScheduledReason, Transition};

use crate::harness::*;

async fn send(
    bench: &Bench,
    worker: WorkerId,
    queue: &str,
    number: u64,
    finishes: Vec<Finish>,
    claim: Option<Claim>,
) -> TurnAnswer {
    let turn = Turn { worker, queue: name(queue), number, finishes, claim };
    bench.store.turn(turn.into()).await.expect("the turn is answered")
}

fn leases(answer: &TurnAnswer) -> Vec<LeaseId> {
    answer.claimed.iter().map(|claimed| claimed.lease).collect()
}

for_every_store! {
    async fn the_same_claim_again_answers_the_same_jobs_with_their_bodies(bench: Bench) {
        bench.enqueue_many("q", (0..5).map(|_| job("send")).collect()).await;
        let worker = bench.worker().await;
        let first = send(&bench, worker, "q", 1, vec![], Some(claim(&["send"], 3))).await;
        bench.hands.advance(secs(1));
        let again = send(&bench, worker, "q", 1, vec![], Some(claim(&["send"], 3))).await;
        assert_eq!(leases(&first), leases(&again));
        for (first, again) in first.claimed.iter().zip(&again.claimed) {
            assert_eq!((&first.task, &first.payload), (&again.task, &again.payload));
            assert_eq!((first.ready_at, first.claimed_at), (again.ready_at, again.claimed_at));
        }
        assert_eq!(bench.counts("send").await.running, 3);
    }

    async fn the_same_finishes_again_are_answered_the_same_and_counted_once(bench: Bench) {
        bench.enqueue_many("q", vec![job("send"), job("send")]).await;
        let worker = bench.worker().await;
        let held = bench.claim(worker, &["send"], 2).await;
        let number = next_number();
        let retry =
            Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(secs(9)), error: None };
        let finishes = vec![
            Finish::new(held[0].lease, retry),
            Finish::new(LeaseId { run: 9, ..held[1].lease }, succeed()),
        ];
        for _ in 0..3 {
            let answer = send(&bench, worker, "q", number, finishes.clone(), None).await;
            assert_eq!(answer.finished, [Finished::Done, Finished::LeaseLost]);
        }
        assert_eq!(bench.job(held[0].lease.job).await.failures, 1);
    }

    async fn numbers_of_other_workers_and_queues_are_their_own(bench: Bench) {
        bench.enqueue_many("q", vec![job("send"), job("send")]).await;
        bench.enqueue_many("other", vec![job("send")]).await;
        let (first, second) = (bench.worker().await, bench.worker().await);
        for (worker, queue) in [(first, "q"), (second, "q"), (first, "other")] {
            let answer = send(&bench, worker, queue, 1, vec![], Some(claim(&["send"], 1))).await;
            assert_eq!(answer.claimed.len(), 1);
        }
    }

    async fn a_lease_that_was_lost_meanwhile_is_not_answered_again(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let worker = bench.worker().await;
        send(&bench, worker, "q", 1, vec![], Some(claim(&["send"], 1))).await;
        bench.pass(LEASE).await;
        let again = send(&bench, worker, "q", 1, vec![], Some(claim(&["send"], 1))).await;
        assert!(again.claimed.is_empty());
        assert_eq!(bench.state(id).await, State::Ready);
    }

    async fn the_next_number_goes_on(bench: Bench) {
        bench.enqueue_many("q", vec![job("send"), job("send")]).await;
        let worker = bench.worker().await;
        let first = send(&bench, worker, "q", 1, vec![], Some(claim(&["send"], 1))).await;
        let finishes = vec![Finish::new(leases(&first)[0], succeed())];
        let second = send(&bench, worker, "q", 2, finishes, Some(claim(&["send"], 1))).await;
        assert_eq!(second.finished, [Finished::Done]);
        assert_ne!(leases(&first), leases(&second));
    }
}
