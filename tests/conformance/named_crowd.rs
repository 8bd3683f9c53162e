//! A crowd before a named limit: however many jobs stand in line, each starts in vain at most once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use flexiq::JobId;
use flexiq::internals::{Ask, LeaseId};

use crate::harness::*;
use crate::permits::*;

for_every_store! {
    async fn each_job_behind_a_limit_of_five_starts_in_vain_at_most_once(bench: Bench) {
        const JOBS: usize = 1_000;
        let mut left: BTreeSet<JobId> = BTreeSet::new();
        for _ in 0..JOBS / 500 {
            left.extend(bench.enqueue_many("q", jobs("call", 500)).await.iter().map(|stored| stored.id));
        }
        let mut in_vain: BTreeMap<JobId, u32> = BTreeMap::new();
        let mut held = VecDeque::new();
        while !left.is_empty() {
            let came = bench.come(40).await;
            assert!(!came.is_empty() || !held.is_empty(), "{} wait for nobody", left.len());
            for run in came {
                let ask = one_of(5, run);
                if bench.is_granted(&ask).await {
                    held.push_back(ask);
                } else {
                    *in_vain.entry(run.job).or_default() += 1;
                    bench.stand_in_line(&ask).await;
                }
            }
            assert!(held.len() <= 5, "{} at once", held.len());
            if let Some(ends) = held.pop_front() {
                bench.succeeds(&ends).await;
                left.remove(&ends.permit.lease.job);
            }
            bench.hands.advance(millis(1));
        }
        assert_eq!(in_vain.values().max(), Some(&1));
    }
    async fn a_job_that_is_called_comes_before_all_that_was_ready_later(bench: Bench) {
        for is_called_while_it_runs in [false, true] {
            let runs = bench.runs(2).await;
            let place = bench.job(runs[1].job).await.due_at;
            let ask = |run| Ask { ready_at: place.into(), ..one_of(1, run) };
            assert!(bench.is_granted(&ask(runs[0])).await);
            let due = bench.refused(&ask(runs[1])).await;
            bench.hands.advance(secs(1));
            let fresh = bench.enqueue_many("q", jobs("call", 3)).await;
            if is_called_while_it_runs {
                bench.succeeds(&ask(runs[0])).await;
                bench.end_in_line(runs[1], due).await;
            } else {
                bench.end_in_line(runs[1], due).await;
                bench.succeeds(&ask(runs[0])).await;
            }
            assert_eq!(bench.job(runs[1].job).await.due_at, place);
            let came = bench.come(4).await;
            let came: Vec<JobId> = came.iter().map(|run| run.job).collect();
            assert_eq!(came, [runs[1].job, fresh[0].id, fresh[1].id, fresh[2].id]);
            for run in came {
                bench.finish(bench.living, LeaseId { job: run, run: bench.job(run).await.runs }, succeed()).await;
            }
            bench.pass(LEASE).await;
        }
    }
}
