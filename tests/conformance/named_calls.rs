//! Calls out of the line of a named limit that meet each other, and permits whose answers were lost.

use flexiq::internals::GiveBack;
use flexiq::{ScheduledReason, State};

use crate::harness::*;
use crate::permits::*;

for_every_store! {
    async fn a_job_that_two_lines_call_at_once_is_ready_once(bench: Bench) {
        let runs = bench.runs(2).await;
        let holds = [of_key("a", one_of(1, runs[0])), of_key("b", one_of(1, runs[0]))];
        let wants = [of_key("a", one_of(1, runs[1])), of_key("b", one_of(1, runs[1]))];
        for (hold, want) in holds.iter().zip(&wants) {
            assert!(bench.is_granted(hold).await);
            bench.refused(want).await;
        }
        let due = bench.refused(&wants[0]).await;
        bench.end_in_line(runs[1], due).await;
        let both = holds.iter().map(|ask| GiveBack { ask: ask.clone(), hold: None }).collect();
        bench.store.give_back(both).await.expect("they are given back");
        let counts = bench.store.counts().await.expect("it answers").tasks;
        let of_task = counts.iter().find(|counts| counts.task == "call").expect("it has jobs");
        assert_eq!((of_task.scheduled, of_task.ready, of_task.running), (0, 1, 1));
        assert_eq!(bench.come(5).await.len(), 1);
        let counts = bench.store.counts().await.expect("it answers").tasks;
        let of_task = counts.iter().find(|counts| counts.task == "call").expect("it has jobs");
        assert_eq!((of_task.ready, of_task.running), (0, 2));
    }

    async fn a_permit_that_is_asked_for_again_lasts_from_then(bench: Bench) {
        let runs = bench.runs(2).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await);
        bench.pass(LEASE - secs(1)).await;
        assert!(bench.is_granted(&one_of(1, runs[0])).await, "its first answer may have been lost");
        bench.pass(LEASE - secs(1)).await;
        bench.refused(&one_of(1, runs[1])).await;
        bench.pass(secs(2)).await;
        assert!(bench.is_granted(&one_of(1, runs[1])).await);
    }

    async fn nobody_is_called_in_a_step_that_holds_the_limit(bench: Bench) {
        let runs = bench.runs(3).await;
        for run in &runs[..2] {
            assert!(bench.is_granted(&one_of(2, *run)).await);
        }
        bench.stand_in_line(&one_of(2, runs[2])).await;
        let given = vec![
            GiveBack { ask: one_of(2, runs[0]), hold: None },
            GiveBack { ask: one_of(2, runs[1]), hold: Some(secs(30)) },
        ];
        bench.store.give_back(given).await.expect("they are given back");
        assert_eq!(bench.state(runs[2].job).await, State::Scheduled(ScheduledReason::Limit));
        assert!(!bench.is_called(runs[2].job).await);
    }
}
