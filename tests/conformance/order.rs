//! order: priority first, then age, then id, across the tasks and partitions of a queue.

use flexiq::internals::NewJob;
use flexiq::internals::{Due, Transition};
use flexiq::{DeadReason, JobId, State};

use crate::harness::*;

fn with_priority(task: &str, priority: i8) -> NewJob {
    NewJob { priority, ..job(task) }
}

for_every_store! {
    async fn a_higher_priority_comes_first_whatever_its_age(bench: Bench) {
        let mut expected = Vec::new();
        for (task, priority) in [("a", -100), ("b", 0), ("a", 5), ("b", 100)] {
            expected.insert(0, bench.enqueue(with_priority(task, priority)).await);
            bench.hands.advance(millis(1));
        }
        assert_eq!(ids(&bench.claim(bench.living, &["a", "b"], 10).await), expected);
    }

    async fn within_a_priority_the_older_comes_first_across_tasks_and_partitions(bench: Bench) {
        let mut expected = Vec::new();
        for round in 0..30 {
            let mut one = job(["a", "b", "c"][round % 3]);
            one.partition = ["", "x", "y"][round / 3 % 3].into();
            expected.push(bench.enqueue(one).await);
            bench.hands.advance(millis(1));
        }
        // In several claims, so that lanes are read again and again.
        let mut order = Vec::new();
        for most in [1, 2, 4, 8, 100] {
            order.extend(ids(&bench.claim(bench.living, &["a", "b", "c"], most).await));
        }
        assert_eq!(order, expected);
    }

    async fn ties_are_broken_by_id(bench: Bench) {
        let mut jobs: Vec<NewJob> = (0..40).map(|number| job(["a", "b"][number % 2])).collect();
        let mut expected: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        expected.sort_unstable();
        jobs.reverse();
        bench.enqueue_many("q", jobs).await;
        assert_eq!(ids(&bench.claim(bench.living, &["a", "b"], 100).await), expected);
    }

    async fn one_claim_takes_from_many_tasks_in_order_and_leases_each_job_once(bench: Bench) {
        let tasks: Vec<String> = (0..70).map(|number| format!("task-{number:02}")).collect();
        let names: Vec<&str> = tasks.iter().map(String::as_str).collect();
        let mut expected = Vec::new();
        for round in 0..2 {
            for name in &names[round..] {
                expected.push(bench.enqueue(job(name)).await);
                bench.hands.advance(millis(1));
            }
        }
        let mut wanted = claim(&names, 100);
        for (number, room) in wanted.tasks.iter_mut().enumerate() {
            room.max_losses = number as u32 % 2;
        }
        let claimed = bench.turn(bench.living, vec![], Some(wanted)).await.claimed;
        assert_eq!(ids(&claimed), expected[..100]);
        assert!(claimed.iter().all(|claimed| claimed.lease.run == 1));
        for (number, id) in expected.into_iter().enumerate() {
            let job = bench.job(id).await;
            let state = if number < 100 { State::Running } else { State::Ready };
            assert_eq!((job.state, job.runs), (state, u32::from(number < 100)), "{number}");
        }
        // Their worker dies: each lease has the losses that its own task forgives.
        let dead = claimed.iter().filter(|claimed| claimed.task.as_bytes()[6] % 2 == 0).count();
        bench.pass(LEASE * 3).await;
        let mut found = 0;
        for claimed in &claimed {
            found += usize::from(bench.state(claimed.lease.job).await == State::Dead(DeadReason::Losses));
        }
        assert_eq!(found, dead);
    }

    async fn a_full_task_is_passed_over_and_the_others_keep_their_order(bench: Bench) {
        let mut expected = Vec::new();
        for round in 0..9 {
            let id = bench.enqueue(job(["a", "b", "c"][round % 3])).await;
            if round % 3 != 0 || round == 0 {
                expected.push(id);
            }
            bench.hands.advance(millis(1));
        }
        let mut wanted = claim(&["a", "b", "c"], 100);
        wanted.tasks[0].at_most = 1;
        let claimed = bench.turn(bench.living, vec![], Some(wanted)).await.claimed;
        assert_eq!(ids(&claimed), expected);
    }

    async fn a_delayed_job_is_as_old_as_its_due_time(bench: Bench) {
        let delayed = bench.enqueue(NewJob { due: Due::In(secs(5)), ..job("a") }).await;
        bench.hands.advance(secs(4));
        let before = bench.enqueue(job("a")).await;
        bench.hands.advance(secs(2));
        let after = bench.enqueue(job("a")).await;
        let claimed = bench.claim(bench.living, &["a"], 10).await;
        assert_eq!(ids(&claimed), [before, delayed, after]);
        assert_eq!(claimed[1].ready_at, START + secs(5));
    }

    async fn a_released_job_returns_to_its_old_place(bench: Bench) {
        let first = bench.enqueue(job("a")).await;
        let held = bench.claim(bench.living, &["a"], 1).await;
        bench.hands.advance(secs(1));
        let second = bench.enqueue(job("a")).await;
        bench.finish(bench.living, held[0].lease, Transition::Release).await;
        assert_eq!(ids(&bench.claim(bench.living, &["a"], 10).await), [first, second]);
    }
}
