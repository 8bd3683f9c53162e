//! Named limits: who is granted a permit, and how it ends.

use flexiq::DeadReason;
use flexiq::internals::{Ask, Asked, Beat, GiveBack, Lapse, LeaseId, PermitId, Transition};

use crate::harness::*;
use crate::permits::*;

for_every_store! {
    async fn a_permit_is_granted_while_fewer_are_held_than_the_number(bench: Bench) {
        let runs = bench.runs(4).await;
        for (run, is_granted) in runs.iter().zip([true, true, true, false]) {
            assert_eq!(bench.is_granted(&one_of(3, *run)).await, is_granted);
        }
    }

    async fn a_run_that_asks_again_for_what_it_holds_has_it_and_counts_once(bench: Bench) {
        let runs = bench.runs(2).await;
        for _ in 0..3 {
            assert!(bench.is_granted(&one_of(2, runs[0])).await);
        }
        assert!(bench.is_granted(&one_of(2, runs[1])).await);
        assert!(bench.is_granted(&one_of(1, runs[0])).await, "with another number, too");
        bench.give_back(&one_of(2, runs[0])).await;
        let next = bench.runs(1).await;
        assert!(bench.is_granted(&one_of(2, next[0])).await);
    }

    async fn limits_of_another_name_or_key_know_nothing_of_each_other(bench: Bench) {
        let run = bench.runs(2).await;
        let full = one_of(1, run[0]);
        assert!(bench.is_granted(&full).await);
        let other = one_of(1, run[1]);
        let named = Ask { permit: PermitId { limit: name("ap"), ..other.permit.clone() }, ..other.clone() };
        assert!(bench.is_granted(&named).await);
        assert!(bench.is_granted(&of_key("i", other.clone())).await);
        assert!(bench.is_granted(&of_key(&"k".repeat(200), other.clone())).await);
        assert!(!bench.is_granted(&other).await);
        bench.give_back(&of_key("i", full.clone())).await;
        assert!(!bench.is_granted(&other).await);
    }

    async fn one_run_may_hold_permits_of_several_keys(bench: Bench) {
        let runs = bench.runs(2).await;
        for key in ["a", "b"] {
            assert!(bench.is_granted(&of_key(key, one_of(1, runs[0]))).await);
        }
        bench.give_back(&of_key("a", one_of(1, runs[0]))).await;
        assert!(bench.is_granted(&of_key("a", one_of(1, runs[1]))).await);
        assert!(!bench.is_granted(&of_key("b", one_of(1, runs[1]))).await);
    }

    async fn tasks_and_queues_make_no_difference(bench: Bench) {
        let runs = bench.runs(1).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        let elsewhere = bench.enqueue_many("elsewhere", jobs("other", 1)).await[0].id;
        let ask = Ask { queue: name("elsewhere"), ..one_of(1, LeaseId { job: elsewhere, run: 1 }) };
        assert!(!bench.is_granted(&ask).await);
    }

    async fn callers_that_name_different_numbers_are_each_checked_against_their_own(bench: Bench) {
        let runs = bench.runs(4).await;
        assert!(bench.is_granted(&one_of(3, runs[0])).await);
        assert!(bench.is_granted(&one_of(2, runs[1])).await);
        assert!(bench.is_granted(&one_of(3, runs[2])).await);
        assert!(!bench.is_granted(&one_of(1, runs[3])).await);
        bench.give_back(&one_of(3, runs[0])).await;
        bench.give_back(&one_of(3, runs[2])).await;
        assert!(!bench.is_granted(&one_of(1, runs[3])).await, "one is held still");
        bench.give_back(&one_of(2, runs[1])).await;
        assert!(bench.is_granted(&one_of(1, runs[3])).await);
    }

    async fn what_is_given_back_twice_or_was_never_held_frees_nobody_elses(bench: Bench) {
        let runs = bench.runs(4).await;
        for run in &runs[..2] {
            assert!(bench.is_granted(&one_of(2, *run)).await);
        }
        for _ in 0..3 {
            bench.give_back(&one_of(2, runs[0])).await;
        }
        let never = LeaseId { run: 7, ..runs[1] };
        bench.give_back(&one_of(2, never)).await;
        assert!(bench.is_granted(&one_of(2, runs[2])).await);
        assert!(!bench.is_granted(&one_of(2, runs[3])).await);
    }

    async fn several_are_given_back_in_one_step(bench: Bench) {
        let runs = bench.runs(5).await;
        let given = |run: &LeaseId| GiveBack { ask: one_of(2, *run), hold: None };
        for run in &runs[..2] {
            assert!(bench.is_granted(&one_of(2, *run)).await);
        }
        bench.store.give_back([0, 1, 0].map(|of: usize| given(&runs[of])).into()).await.expect("given back");
        for (run, is_granted) in runs[2..].iter().zip([true, true, false]) {
            assert_eq!(bench.is_granted(&one_of(2, *run)).await, is_granted);
        }
    }

    async fn however_a_run_ends_its_permit_is_given_back_once_and_by_its_worker(bench: Bench) {
        let dead = Transition::Kill { reason: DeadReason::Failures, error: None };
        for end in [succeed(), Transition::Release, Transition::PutBack, Transition::Cancel, dead] {
            let runs = bench.runs(2).await;
            let (first, second) = (one_of(1, runs[0]), one_of(1, runs[1]));
            assert!(bench.is_granted(&first).await);
            bench.finish(bench.living, runs[0], end).await;
            assert!(!bench.is_granted(&second).await, "the end of a run alone gives nothing back");
            bench.give_back(&first).await;
            assert!(bench.is_granted(&second).await);
            bench.give_back(&first).await;
            let third = one_of(1, LeaseId { run: 9, ..runs[1] });
            assert!(!bench.is_granted(&third).await, "nothing is given back for another");
            bench.give_back(&second).await;
            bench.finish(bench.living, runs[1], succeed()).await;
            while let [left] = bench.come(1).await[..] {
                bench.give_back(&one_of(1, left)).await;
                bench.finish(bench.living, left, succeed()).await;
            }
            bench.pass(secs(5)).await;
        }
    }

    async fn a_permit_lasts_for_as_long_as_beats_name_it(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        for _ in 0..10 {
            bench.hands.advance(BEAT);
            assert!(bench.beat_for(&runs, &runs[..1]).await.lapsed.is_empty());
        }
        assert!(!bench.is_granted(&one_of(1, runs[1])).await);
    }

    async fn a_permit_that_no_beat_names_lapses_and_who_names_it_later_is_told(bench: Bench) {
        let runs = bench.runs(2).await;
        let (first, second) = (one_of(1, runs[0]), one_of(1, runs[1]));
        assert!(bench.is_granted(&first).await);
        bench.pass(LEASE - millis(1)).await;
        assert!(!bench.is_granted(&second).await);
        bench.hands.advance(millis(1));
        assert!(bench.is_granted(&second).await);
        let answer = bench.beat_for(&[], &runs).await;
        assert_eq!(answer.lapsed, [permit(runs[0])]);
        bench.give_back(&first).await;
        assert!(!bench.is_granted(&first).await, "it freed nobody else's");
        assert!(bench.is_granted(&second).await, "it is held still");
    }

    async fn a_permit_that_its_run_asks_for_again_after_it_has_lapsed_is_a_new_one(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.pass(LEASE).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.pass(LEASE - millis(1)).await;
        assert!(!bench.is_granted(&one_of(1, runs[1])).await);
    }

    async fn after_an_outage_no_permit_lapses_for_one_lease(bench: Bench) {
        let runs = bench.runs(3).await;
        assert!(bench.is_granted(&one_of(2, runs[0])).await);
        assert!(bench.is_granted(&one_of(2, runs[1])).await);
        bench.hands.advance(secs(60));
        assert!(!bench.is_granted(&one_of(2, runs[2])).await);
        assert!(bench.beat_for(&[], &runs[..1]).await.lapsed.is_empty(), "the living renew first");
        for _ in 0..2 {
            bench.hands.advance(BEAT);
            bench.beat_for(&[], &runs[..1]).await;
            assert!(!bench.is_granted(&one_of(2, runs[2])).await);
        }
        bench.hands.advance(LEASE - BEAT * 2);
        bench.beat_for(&[], &runs[..1]).await;
        bench.hands.advance(secs(5));
        bench.beat_for(&[], &runs[..1]).await;
        assert!(bench.is_granted(&one_of(2, runs[2])).await, "nobody has renewed this one");
        assert_eq!(bench.beat_for(&[], &runs[..2]).await.lapsed, [permit(runs[1])]);
    }

    async fn a_clock_that_is_stepped_back_frees_no_permit(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.stand_in_line(&one_of(1, runs[1])).await;
        bench.hands.step_to(START - secs(3_600));
        assert_eq!(bench.acquire(&one_of(1, runs[0])).await, Asked::Granted);
        bench.beat_for(&runs[..1], &runs[..1]).await;
        assert!(!bench.is_called(runs[1].job).await);
        for _ in 0..3 {
            bench.hands.advance(BEAT);
            bench.beat(bench.living, &runs[..1]).await;
            assert!(!bench.is_called(runs[1].job).await);
        }
        bench.hands.advance(BEAT);
        bench.beat(bench.living, &runs[..1]).await;
        assert!(bench.is_called(runs[1].job).await, "it lapses by the clock that there is now");
    }

    async fn the_permit_of_a_killed_holder_is_free_within_one_lease_and_a_beat_calls_the_first(bench: Bench) {
        let dies = bench.worker().await;
        bench.enqueue(job("call")).await;
        let killed = bench.claim(dies, &["call"], 1).await[0].lease;
        assert!(bench.is_granted(&one_of(1, killed)).await);
        let waiting = bench.runs(2).await;
        for run in &waiting {
            bench.stand_in_line(&one_of(1, *run)).await;
        }
        bench.pass(LEASE - millis(1)).await;
        assert!(!bench.is_called(waiting[0].job).await);
        bench.hands.advance(millis(1));
        bench.beat(bench.living, &[]).await;
        assert!(bench.is_called(waiting[0].job).await);
        assert!(!bench.is_called(waiting[1].job).await);
        let came = bench.come(5).await;
        let again = came.iter().find(|run| run.job == waiting[0].job).expect("it was called");
        assert!(bench.is_granted(&one_of(1, *again)).await);
        let late = Beat {
            worker: dies,
            lease: LEASE,
            every: BEAT,
            leases: vec![(killed, Lapse::Loss)],
            permits: vec![permit(killed)],
            report: None,
        };
        let told = bench.store.extend(late).await.expect("the beat is answered");
        assert_eq!((told.lost, told.lapsed), (vec![killed], vec![permit(killed)]));
    }
}
