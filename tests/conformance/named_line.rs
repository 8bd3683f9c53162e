//! The line before a named limit: whoever was refused first is called first, and starts in vain at most once.

use flexiq::internals::{Change, Due, NewJob, RESERVED, ScheduledReason, Transition, fallback};
use flexiq::{DeadReason, State};

use crate::harness::*;
use crate::permits::*;

for_every_store! {
    async fn what_is_given_back_calls_the_first_in_line_at_once(bench: Bench) {
        let runs = bench.runs(3).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        for run in &runs[1..] {
            bench.stand_in_line(&one_of(1, *run)).await;
            bench.hands.advance(secs(1));
        }
        assert_eq!(bench.state(runs[1].job).await, State::Scheduled(ScheduledReason::Limit));
        bench.give_back(&one_of(1, runs[0])).await;
        assert!(bench.is_called(runs[1].job).await);
        assert!(!bench.is_called(runs[2].job).await);
        let job = bench.job(runs[1].job).await;
        assert_eq!((job.deferrals, job.failures, job.runs), (1, 0, 1));
        let came = bench.come(5).await;
        assert_eq!(came.len(), 1);
        assert!(bench.is_granted(&one_of(1, came[0])).await);
    }

    async fn asking_again_keeps_the_place(bench: Bench) {
        let runs = bench.runs(3).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.refused(&one_of(1, runs[1])).await;
        bench.stand_in_line(&one_of(1, runs[2])).await;
        bench.refused(&one_of(1, runs[1])).await;
        bench.stand_in_line(&one_of(1, runs[1])).await;
        bench.give_back(&one_of(1, runs[0])).await;
        assert!(bench.is_called(runs[1].job).await);
        assert!(!bench.is_called(runs[2].job).await);
    }

    async fn a_job_is_called_while_its_run_has_not_ended_yet(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        let due = bench.refused(&one_of(1, runs[1])).await;
        bench.give_back(&one_of(1, runs[0])).await;
        bench.hands.advance(secs(1));
        bench.end_in_line(runs[1], due).await;
        assert!(bench.is_called(runs[1].job).await);
        let came = bench.come(5).await;
        assert!(bench.is_granted(&one_of(1, came[0])).await);
        bench.end_in_line(came[0], START + secs(60)).await;
        assert!(!bench.is_called(runs[1].job).await, "it was called once");
    }

    async fn a_run_that_is_called_and_asks_again_has_its_permit(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.refused(&one_of(1, runs[1])).await;
        bench.give_back(&one_of(1, runs[0])).await;
        assert!(bench.is_granted(&one_of(1, runs[1])).await);
        let other = Transition::Schedule { reason: ScheduledReason::Limit, due: Due::In(secs(60)), error: None };
        bench.finish(bench.living, runs[1], other).await;
        assert!(!bench.is_called(runs[1].job).await, "it was called for what it had then");
    }

    async fn a_permit_is_reserved_for_who_was_called_and_for_nobody_else(bench: Bench) {
        let runs = bench.runs(3).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.stand_in_line(&one_of(1, runs[1])).await;
        bench.give_back(&one_of(1, runs[0])).await;
        bench.hands.advance(RESERVED - millis(1));
        assert!(!bench.is_granted(&one_of(1, runs[2])).await);
        let came = bench.come(1).await;
        assert_eq!(came[0].job, runs[1].job);
        assert!(bench.is_granted(&one_of(1, came[0])).await);
    }

    async fn who_does_not_come_within_five_seconds_has_lost_its_place(bench: Bench) {
        let runs = bench.runs(4).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        for run in &runs[1..3] {
            bench.stand_in_line(&one_of(1, *run)).await;
        }
        bench.give_back(&one_of(1, runs[0])).await;
        let late = bench.come(1).await[0];
        assert_eq!(late.job, runs[1].job);
        bench.hands.advance(RESERVED);
        assert!(!bench.is_granted(&one_of(1, late)).await, "the next was called meanwhile");
        assert!(bench.is_called(runs[2].job).await);
        bench.end_in_line(late, START + secs(600)).await;
        let next = bench.come(1).await[0];
        assert!(bench.is_granted(&one_of(1, next)).await);
        bench.stand_in_line(&one_of(1, runs[3])).await;
        bench.give_back(&one_of(1, next)).await;
        assert!(bench.is_called(runs[1].job).await, "it stands in line anew");
        assert!(!bench.is_called(runs[3].job).await);
    }

    async fn a_reservation_that_lapses_calls_the_next_whoever_sees_it(bench: Bench) {
        for who_sees in ["a beat", "who gives back", "who asks"] {
            let runs = bench.runs(5).await;
            let key = |ask| of_key(who_sees, ask);
            for run in &runs[..2] {
                assert!(bench.is_granted(&key(one_of(2, *run))).await);
            }
            for run in &runs[2..4] {
                bench.stand_in_line(&key(one_of(2, *run))).await;
            }
            bench.give_back(&key(one_of(2, runs[0]))).await;
            assert_eq!(bench.come(5).await.len(), 1);
            bench.hands.advance(RESERVED);
            match who_sees {
                "a beat" => drop(bench.beat(bench.living, &[]).await),
                "who gives back" => bench.give_back(&key(one_of(2, runs[0]))).await,
                _ => drop(bench.refused(&key(one_of(2, runs[4]))).await),
            }
            assert!(bench.is_called(runs[3].job).await, "{who_sees}");
            assert_eq!(bench.come(5).await.len(), 1);
        }
    }

    async fn a_job_that_has_ended_or_waits_for_something_else_is_passed_over_in_the_same_step(bench: Bench) {
        let runs = bench.runs(8).await;
        let holder = one_of(1, runs[0]);
        assert!(bench.is_granted(&holder).await);
        let due = bench.refused(&one_of(1, runs[1])).await;
        for run in &runs[2..] {
            bench.refused(&one_of(1, *run)).await;
        }
        let retry =
            Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(secs(900)), error: None };
        let defer =
            Transition::Schedule { reason: ScheduledReason::Deferral, due: Due::In(secs(900)), error: None };
        let kill = Transition::Kill { reason: DeadReason::Never, error: None };
        let ends = [succeed(), kill, Transition::Cancel, retry, defer];
        for (run, end) in runs[1..].iter().zip(ends) {
            bench.finish(bench.living, *run, end).await;
        }
        for run in &runs[6..] {
            bench.end_in_line(*run, due).await;
        }
        bench.give_back(&holder).await;
        assert!(bench.is_called(runs[6].job).await);
        assert!(!bench.is_called(runs[7].job).await);
        for run in &runs[4..6] {
            assert_eq!(bench.due(run.job).await, START + secs(900));
        }
    }

    async fn a_job_that_is_cancelled_deleted_or_expires_in_line_never_blocks_it(bench: Bench) {
        let expiring = NewJob { expires: Some(secs(5)), ..job("call") };
        let doomed = bench.enqueue(expiring).await;
        let mut runs = bench.come(1).await;
        runs.extend(bench.runs(4).await);
        let holder = one_of(1, runs[4]);
        assert!(bench.is_granted(&holder).await);
        for run in &runs[..4] {
            bench.stand_in_line(&one_of(1, *run)).await;
        }
        for run in &runs[1..3] {
            bench.store.cancel(run.job).await.expect("answers");
        }
        assert!(bench.store.delete(runs[2].job).await.expect("answers"));
        bench.pass(secs(6)).await;
        assert_eq!(bench.state(doomed).await, State::Expired);
        bench.give_back(&holder).await;
        assert!(bench.is_called(runs[3].job).await);
    }

    async fn the_first_who_does_not_fit_holds_back_all_behind_it(bench: Bench) {
        let runs = bench.runs(4).await;
        for run in &runs[..2] {
            assert!(bench.is_granted(&one_of(3, *run)).await);
        }
        bench.stand_in_line(&one_of(1, runs[2])).await;
        assert!(!bench.is_granted(&one_of(3, runs[3])).await, "there is room for it, but it was not first");
        bench.give_back(&one_of(3, runs[0])).await;
        assert!(!bench.is_called(runs[2].job).await);
        bench.give_back(&one_of(3, runs[1])).await;
        assert!(bench.is_called(runs[2].job).await);
        assert!(bench.is_granted(&one_of(3, runs[3])).await, "it fits beside the one that was called");
    }

    async fn the_time_behind_the_calls_grows_with_the_line(bench: Bench) {
        let runs = bench.runs(12).await;
        for run in &runs[..2] {
            assert!(bench.is_granted(&one_of(2, *run)).await);
        }
        for (before, run) in runs[2..].iter().enumerate() {
            let wait = fallback(before as u64, Some(2), &[]);
            assert_eq!(bench.stand_in_line(&one_of(2, *run)).await, START + wait);
        }
    }

    async fn who_was_called_and_is_refused_after_all_stands_before_who_came_later(bench: Bench) {
        let runs = bench.runs(4).await;
        // By its id alone it would stand behind the other.
        let (later, first) = (runs[2], runs[3]);
        assert!(bench.is_granted(&one_of(2, runs[0])).await);
        assert!(bench.is_granted(&one_of(2, runs[1])).await);
        let due = bench.refused(&one_of(2, first)).await;
        bench.give_back(&one_of(2, runs[0])).await;
        bench.refused(&one_of(1, later)).await;
        // It was called, and asks with a smaller number now.
        bench.refused(&one_of(1, first)).await;
        for run in [first, later] {
            bench.end_in_line(run, due).await;
        }
        bench.come(1).await;
        bench.give_back(&one_of(2, runs[1])).await;
        assert!(!bench.is_called(later.job).await);
    }

    async fn a_call_wakes_a_sleeper(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.stand_in_line(&one_of(1, runs[1])).await;
        let (worker, wait) = asleep(&bench, &["call"]).await;
        bench.give_back(&one_of(1, runs[0])).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(ids(&bench.claim(worker, &["call"], 1).await), [runs[1].job]);
    }

    async fn a_job_that_comes_by_its_time_keeps_its_place(bench: Bench) {
        let runs = bench.runs(3).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        for run in &runs[1..] {
            bench.stand_in_line(&one_of(1, *run)).await;
        }
        // It was told that it is due, but has not been claimed: a call changes nothing about that.
        bench.set_task("call", Change::Paused(true)).await;
        while bench.state(runs[1].job).await != State::Ready {
            bench.hands.advance(BEAT);
            bench.beat_for(&runs[..1], &runs[..1]).await;
        }
        bench.set_task("call", Change::Paused(false)).await;
        let came = bench.come(1).await[0];
        assert_eq!(came.job, runs[1].job);
        bench.refused(&one_of(1, came)).await;
        bench.give_back(&one_of(1, runs[0])).await;
        assert!(bench.is_granted(&one_of(1, came)).await);
    }
}
