//! A named limit that is held: what it guards has said that nobody should come for a while.

use flexiq::internals::RESERVED;

use crate::harness::*;
use crate::permits::*;

for_every_store! {
    async fn nobody_is_granted_a_permit_while_a_limit_is_held_and_then_its_own_job_is_first(bench: Bench) {
        let runs = bench.runs(4).await;
        assert!(bench.is_granted(&one_of(2, runs[0])).await);
        assert!(bench.is_granted(&one_of(2, runs[1])).await);
        bench.stand_in_line(&one_of(2, runs[2])).await;
        bench.give_back_and_hold(&one_of(2, runs[0]), 30).await;
        bench.end_in_line(runs[0], START + secs(31)).await;
        assert_eq!(bench.due(runs[0].job).await, START + secs(30));
        bench.succeeds(&one_of(2, runs[1])).await;
        assert!(!bench.is_called(runs[2].job).await);
        bench.stand_in_line(&one_of(2, runs[3])).await;
        bench.pass(secs(30) - millis(1)).await;
        assert!(bench.come(5).await.is_empty());
        bench.hands.advance(millis(1));
        let came = bench.come(5).await;
        assert_eq!((came.len(), came[0].job), (1, runs[0].job));
        assert!(bench.is_granted(&one_of(2, came[0])).await);
        assert!(bench.is_called(runs[2].job).await);
        assert!(!bench.is_called(runs[3].job).await);
    }

    async fn the_first_in_line_is_due_when_the_hold_is_over(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(5, runs[0])).await);
        bench.give_back_and_hold(&one_of(5, runs[0]), 30).await;
        bench.finish(bench.living, runs[0], succeed()).await;
        // The other's job has ended, and holds nobody back.
        bench.pass(secs(9)).await;
        bench.beat_for(&runs[1..], &[]).await;
        bench.stand_in_line(&one_of(5, runs[1])).await;
        bench.pass(secs(21)).await;
        assert!(bench.is_called(runs[1].job).await);
    }

    async fn a_shorter_hold_does_not_end_a_longer_one(bench: Bench) {
        let runs = bench.runs(2).await;
        for run in &runs {
            assert!(bench.is_granted(&one_of(2, *run)).await);
        }
        bench.give_back_and_hold(&one_of(2, runs[0]), 60).await;
        bench.give_back_and_hold(&one_of(2, runs[1]), 10).await;
        bench.end_in_line(runs[1], START + secs(80)).await;
        bench.end_in_line(runs[0], START + secs(80)).await;
        assert_eq!(bench.due(runs[1].job).await, START + secs(60));
        bench.pass(secs(11)).await;
        let third = bench.runs(1).await[0];
        assert!(!bench.is_granted(&one_of(2, third)).await);
        bench.finish(bench.living, third, succeed()).await;
        bench.pass(secs(49)).await;
        let came = bench.come(2).await;
        for run in &came {
            assert!(bench.is_granted(&one_of(2, *run)).await);
        }
        let jobs: Vec<_> = came.iter().map(|run| run.job).collect();
        assert_eq!(jobs, [runs[0].job, runs[1].job]);
    }

    async fn a_hold_goes_with_a_permit_that_has_lapsed(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(5, runs[0])).await);
        bench.pass(LEASE).await;
        assert!(bench.is_granted(&one_of(1, runs[1])).await, "it has lapsed");
        bench.give_back_and_hold(&one_of(5, runs[0]), 30).await;
        let third = bench.runs(2).await[1];
        assert!(!bench.is_granted(&one_of(5, third)).await);
    }

    async fn other_keys_are_not_held(bench: Bench) {
        let runs = bench.runs(2).await;
        let ask = |key, run| of_key(key, one_of(1, run));
        assert!(bench.is_granted(&ask("a", runs[0])).await);
        bench.give_back_and_hold(&ask("a", runs[0]), 30).await;
        assert!(bench.is_granted(&ask("b", runs[1])).await);
        assert!(!bench.is_granted(&ask("a", runs[1])).await);
    }

    async fn a_job_whose_run_has_ended_before_its_hold_comes_is_due_at_its_end(bench: Bench) {
        let run = bench.runs(1).await[0];
        assert!(bench.is_granted(&one_of(1, run)).await);
        bench.end_in_line(run, START + secs(30)).await;
        bench.hands.advance(secs(1));
        bench.give_back_and_hold(&one_of(1, run), 30).await;
        assert_eq!(bench.due(run.job).await, START + secs(31));
    }

    async fn who_waits_for_a_hold_and_a_rate_is_due_when_both_are_over(bench: Bench) {
        let runs = bench.runs(2).await;
        let ask = |run| at_rate("2/m", run);
        for run in &runs {
            assert!(bench.is_granted(&ask(*run)).await);
        }
        for (run, (hold, due)) in runs.iter().zip([(30, 60), (90, 90)]) {
            bench.end_in_line(*run, START + secs(1)).await;
            bench.give_back_and_hold(&ask(*run), hold).await;
            assert_eq!(bench.due(run.job).await, START + secs(due));
        }
    }

    async fn who_was_called_before_a_hold_is_refused_and_stands_behind_its_job(bench: Bench) {
        let runs = bench.runs(4).await;
        for run in &runs[..2] {
            assert!(bench.is_granted(&one_of(2, *run)).await);
        }
        for run in &runs[2..] {
            bench.stand_in_line(&one_of(2, *run)).await;
        }
        bench.succeeds(&one_of(2, runs[0])).await;
        bench.give_back_and_hold(&one_of(2, runs[1]), 30).await;
        let called = bench.come(5).await;
        assert_eq!((called.len(), called[0].job), (1, runs[2].job));
        bench.stand_in_line(&one_of(2, called[0])).await;
        bench.end_in_line(runs[1], START + secs(40)).await;
        assert_eq!(bench.due(runs[1].job).await, START + secs(30));
        bench.pass(secs(30)).await;
        for (run, is_called) in [(runs[1], true), (runs[2], true), (runs[3], false)] {
            assert_eq!(bench.is_called(run.job).await, is_called);
        }
    }

    async fn what_is_reserved_when_a_hold_comes_is_not_kept_beyond_its_time(bench: Bench) {
        let runs = bench.runs(3).await;
        for run in &runs[..2] {
            assert!(bench.is_granted(&one_of(2, *run)).await);
        }
        bench.stand_in_line(&one_of(2, runs[2])).await;
        bench.succeeds(&one_of(2, runs[0])).await;
        bench.give_back_and_hold(&one_of(2, runs[1]), 30).await;
        bench.end_in_line(runs[1], START + secs(30)).await;
        bench.pass(RESERVED).await;
        let late = bench.come(5).await[0];
        assert_eq!(late.job, runs[2].job);
        bench.stand_in_line(&one_of(2, late)).await;
        bench.pass(secs(25)).await;
        assert!(bench.is_called(runs[1].job).await);
        assert!(bench.is_called(runs[2].job).await, "there is room for both");
    }
}
