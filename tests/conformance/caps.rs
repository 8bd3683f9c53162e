//! max_concurrent: never more leases than the cap, on the whole fleet, and a slot that is freed is filled at once.

use flexiq::State;
use flexiq::internals::{Change, Claim, Finish, Finished, NewJob, Room, Transition};

use crate::harness::*;

for_every_store! {
    async fn a_cap_holds_across_workers(bench: Bench) {
        let first = bench.declaring(&[("send", cap(3))]).await;
        let second = bench.declaring(&[("send", cap(3))]).await;
        bench.enqueue_many("q", jobs("send", 10)).await;
        assert_eq!(bench.claim(first, &["send"], 2).await.len(), 2);
        assert_eq!(bench.claim(second, &["send"], 10).await.len(), 1);
        assert!(bench.claim(first, &["send"], 10).await.is_empty());
        assert_eq!((bench.counts("send").await.running, bench.counts("send").await.ready), (3, 7));
    }

    async fn a_finish_frees_one_slot_and_its_own_turn_fills_it(bench: Bench) {
        let worker = bench.declaring(&[("send", cap(2))]).await;
        bench.enqueue_many("q", jobs("send", 10)).await;
        let mut held = bench.claim(worker, &["send"], 10).await;
        for _ in 0..4 {
            let done = held.remove(0);
            let finishes = vec![Finish::new(done.lease, succeed())];
            held.extend(bench.turn(worker, finishes, Some(claim(&["send"], 10))).await.claimed);
            assert_eq!(held.len(), 2);
            assert_eq!(bench.counts("send").await.running, 2);
        }
    }

    async fn a_running_job_that_is_cancelled_keeps_its_slot_until_it_has_ended(bench: Bench) {
        let worker = bench.declaring(&[("send", cap(1))]).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        let held = bench.claim(worker, &["send"], 10).await;
        bench.store.cancel(held[0].lease.job).await.expect("answers");
        assert!(bench.claim(worker, &["send"], 10).await.is_empty());
        bench.finish(worker, held[0].lease, Transition::Cancel).await;
        assert_eq!(bench.claim(worker, &["send"], 10).await.len(), 1);
    }

    // https://github.com/rails/solid_queue/pull/761, within one lease; and many of them in `ends.rs`.
    async fn a_dead_workers_slot_is_freed_once_and_its_late_finish_frees_nothing(bench: Bench) {
        let dead = bench.declaring(&[("send", cap(1))]).await;
        let next = bench.declaring(&[("send", cap(1))]).await;
        bench.enqueue_many("q", jobs("send", 5)).await;
        let lost = bench.claim(dead, &["send"], 1).await[0].lease;
        for _ in 0..3 {
            bench.pass(BEAT).await;
            bench.beat(next, &[]).await;
        }
        assert!(bench.claim(next, &["send"], 10).await.is_empty(), "the lease still stands");
        bench.pass(secs(1)).await;
        let held = bench.claim(next, &["send"], 10).await;
        assert_eq!(held.len(), 1, "its slot is free within a lease, once");
        assert_eq!(bench.finish(dead, lost, succeed()).await, Finished::LeaseLost);
        assert!(bench.claim(next, &["send"], 10).await.is_empty(), "a late finish frees nothing");
        assert_eq!(bench.counts("send").await.running, 1);
    }

    // https://github.com/zoolutions/pgbus/pull/460: a job outlived its lease of 180 s, a second one started, and what
    // waited was deleted.
    async fn a_renewed_lease_keeps_its_slot_however_long_it_runs(bench: Bench) {
        let worker = bench.declaring(&[("send", cap(1))]).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        let held = bench.claim(worker, &["send"], 1).await[0].lease;
        for _ in 0..200 {
            bench.pass(BEAT).await;
            bench.beat(worker, &[held]).await;
        }
        assert!(bench.claim(worker, &["send"], 10).await.is_empty());
        assert_eq!(bench.counts("send").await.ready, 1, "what waits does not vanish");
    }

    async fn a_cap_that_is_set_later_counts_what_runs_already(bench: Bench) {
        bench.enqueue_many("q", jobs("send", 10)).await;
        let held = bench.claim(bench.living, &["send"], 4).await;
        bench.set_task("send", Change::MaxConcurrent(Some(3))).await;
        for lease in &held[..2] {
            assert!(bench.claim(bench.living, &["send"], 10).await.is_empty());
            bench.finish(bench.living, lease.lease, succeed()).await;
        }
        assert_eq!(bench.claim(bench.living, &["send"], 10).await.len(), 1);
    }

    async fn a_cap_counts_running_jobs_that_fill_no_row_of_the_limits(bench: Bench) {
        // Two ways to see what runs: a finish of this very turn, and one that lies in the file.
        bench.set_task("send", Change::MaxConcurrent(Some(2))).await;
        bench.enqueue_many("q", jobs("send", 6)).await;
        let held = bench.claim(bench.living, &["send"], 10).await;
        let answer = bench.turn(bench.living, finish_all(&held), Some(claim(&["send"], 10))).await;
        assert_eq!(answer.claimed.len(), 2);
        bench.turn(bench.living, finish_all(&answer.claimed), None).await;
        assert_eq!(bench.claim(bench.living, &["send"], 10).await.len(), 2);
    }

    async fn raising_and_clearing_a_cap_wakes_a_worker_that_waits(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        bench.enqueue_many("q", jobs("send", 5)).await;
        bench.claim(bench.living, &["send"], 5).await;
        let (worker, wait) = asleep(&bench, &["send"]).await;
        bench.set_task("send", Change::MaxConcurrent(Some(2))).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(worker, &["send"], 5).await.len(), 1);
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.set_task("send", Change::MaxConcurrent(None)).await;
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn lowering_a_cap_wakes_nobody(bench: Bench) {
        bench.enqueue_many("q", jobs("send", 5)).await;
        bench.claim(bench.living, &["send"], 2).await;
        bench.set_task("send", Change::MaxConcurrent(Some(2))).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        assert!(bench.is_pending(&mut wait).await);
    }

    async fn two_slots_that_are_freed_wake_two_workers_one_after_the_other(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(2))).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        let held = bench.claim(bench.living, &["send"], 2).await;
        let (first, one) = asleep(&bench, &["send"]).await;
        let (_, other) = asleep(&bench, &["send"]).await;
        bench.turn(bench.living, finish_all(&held), None).await;
        woken(one).await;
        bench.claim(first, &["send"], 1).await;
        assert_eq!(woken(other).await, ["q"]);
    }

    async fn a_finish_that_is_followed_by_a_claim_wakes_nobody_in_vain(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        let mut held = bench.claim(bench.living, &["send"], 2).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        for _ in 0..3 {
            held = bench.turn(bench.living, finish_all(&held), Some(claim(&["send"], 1))).await.claimed;
            assert_eq!(held.len(), 1);
            assert!(bench.is_pending(&mut wait).await);
        }
    }

    async fn a_finish_whose_claim_cannot_take_the_freed_task_wakes_another(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        let held = bench.claim(bench.living, &["send"], 2).await;
        let (_, wait) = asleep(&bench, &["send"]).await;
        bench.turn(bench.living, finish_all(&held), Some(claim(&["other"], 1))).await;
        assert_eq!(woken(wait).await, ["q"]);
    }

    // https://github.com/rails/solid_queue/issues/546: those behind a killed holder waited for the guard of its slot, a day.
    async fn a_reap_that_frees_a_slot_wakes_a_worker(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        let dead = bench.worker().await;
        bench.enqueue_many("q", jobs("send", 3)).await;
        bench.claim(dead, &["send"], 1).await;
        // It cannot do anything else but wait for the cap: not even keep the time of another queue's jobs.
        let (worker, wait) = asleep(&bench, &["send"]).await;
        bench.pass(LEASE).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(worker, &["send"], 5).await.len(), 1);
    }

    async fn an_enqueue_behind_a_full_cap_wakes_nobody(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        bench.enqueue(job("send")).await;
        bench.claim(bench.living, &["send"], 1).await;
        let (_, mut wait) = asleep(&bench, &["send"]).await;
        bench.enqueue_many("q", jobs("send", 3)).await;
        assert!(bench.is_pending(&mut wait).await);
        bench.beat(bench.living, &[]).await;
        assert!(bench.is_pending(&mut wait).await, "nor does a beat");
    }

    async fn a_queue_cap_holds_over_its_tasks(bench: Bench) {
        bench.set_queue(Change::MaxConcurrent(Some(3))).await;
        bench.enqueue_many("q", [jobs("send", 5), jobs("build", 5)].concat()).await;
        let first = bench.claim(bench.living, &["send"], 2).await;
        let second = bench.claim(bench.living, &["build"], 5).await;
        assert_eq!((first.len(), second.len()), (2, 1));
        assert!(bench.claim(bench.living, &["send", "build"], 5).await.is_empty());
        let answer = bench.turn(bench.living, finish_all(&first), Some(claim(&["send", "build"], 5))).await;
        assert_eq!(answer.claimed.len(), 2);
        assert_eq!(bench.counts("send").await.running + bench.counts("build").await.running, 3);
    }

    async fn a_freed_queue_cap_wakes_workers_of_its_other_tasks(bench: Bench) {
        bench.set_queue(Change::MaxConcurrent(Some(1))).await;
        bench.enqueue_many("q", vec![job("send"), job("build")]).await;
        let held = bench.claim(bench.living, &["send"], 5).await;
        let (_, wait) = asleep(&bench, &["build"]).await;
        bench.turn(bench.living, finish_all(&held), Some(claim(&["send"], 5))).await;
        assert_eq!(woken(wait).await, ["q"]);
    }

    async fn another_queue_of_the_same_name_of_task_has_its_own_count(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        bench.enqueue_many("old", jobs("send", 2)).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        assert_eq!(bench.claim(bench.living, &["send"], 5).await.len(), 1);
        let turn = flexiq::internals::Turn {
            worker: bench.living,
            queue: name("old"),
            number: next_number(),
            finishes: vec![],
            claim: Some(claim(&["send"], 5)),
        };
        let old = bench.store.turn(std::sync::Arc::new(turn)).await.expect("answers").claimed;
        assert_eq!(old.len(), 1, "old jobs drain under their own queue's count");
    }

    async fn partitions_of_a_capped_task_share_its_cap(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(3))).await;
        let batch = (0..9).map(|n| NewJob { partition: format!("p{n}"), ..job("send") }).collect();
        bench.enqueue_many("q", batch).await;
        let held = bench.claim(bench.living, &["send"], 9).await;
        assert_eq!(held.len(), 3);
        assert!(bench.claim(bench.living, &["send"], 9).await.is_empty());
        let answer = bench.turn(bench.living, finish_all(&held[..1]), Some(claim(&["send"], 9))).await;
        assert_eq!(answer.claimed.len(), 1);
    }

    async fn a_capped_task_leaves_its_slots_to_others(bench: Bench) {
        bench.set_task("report", Change::MaxConcurrent(Some(3))).await;
        bench.enqueue_many("q", [jobs("report", 30), jobs("email", 20)].concat()).await;
        let wanted = Claim {
            slots: vec![10],
            tasks: ["report", "email"]
                .map(|task| Room { task: name(task), slot: 0, at_most: u32::MAX, max_losses: 3 })
                .to_vec(),
            lease: LEASE,
        };
        let claimed = bench.turn(bench.living, vec![], Some(wanted)).await.claimed;
        let of = |task: &str| claimed.iter().filter(|claimed| &*claimed.task == task).count();
        assert_eq!((of("report"), of("email")), (3, 7));
    }

    async fn a_claim_says_whether_a_cap_counts_its_lease(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(9))).await;
        bench.set_task("build", Change::Rates(Some(rates("9/m")))).await;
        bench.enqueue_many("q", [jobs("send", 1), jobs("build", 2)].concat()).await;
        assert!(bench.claim(bench.living, &["send"], 1).await[0].is_capped);
        assert!(!bench.claim(bench.living, &["build"], 1).await[0].is_capped);
        bench.set_queue(Change::MaxConcurrent(Some(9))).await;
        let turn = std::sync::Arc::new(flexiq::internals::Turn {
            worker: bench.living,
            queue: name("q"),
            number: next_number(),
            finishes: vec![],
            claim: Some(claim(&["build"], 1)),
        });
        for _ in 0..2 {
            let claimed = bench.store.turn(turn.clone()).await.expect("answers").claimed;
            assert!(claimed[0].is_capped, "by the queue's cap, also when it is asked again");
        }
    }

    async fn the_same_turn_again_takes_no_second_slot(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(2))).await;
        bench.enqueue_many("q", jobs("send", 5)).await;
        let turn = std::sync::Arc::new(flexiq::internals::Turn {
            worker: bench.living,
            queue: name("q"),
            number: next_number(),
            finishes: vec![],
            claim: Some(claim(&["send"], 1)),
        });
        let first = bench.store.turn(turn.clone()).await.expect("answers").claimed;
        let again = bench.store.turn(turn).await.expect("answers").claimed;
        assert_eq!(ids(&first), ids(&again));
        assert_eq!(bench.counts("send").await.running, 1);
        assert_eq!(bench.state(first[0].lease.job).await, State::Running);
    }
}

for_every_store_with_bells! {
    async fn one_slot_that_is_freed_wakes_exactly_one_of_two(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(2))).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        let held = bench.claim(bench.living, &["send"], 2).await;
        let (first, mut one) = asleep(&bench, &["send"]).await;
        let (second, mut other) = asleep(&bench, &["send"]).await;
        bench.finish(bench.living, held[0].lease, succeed()).await;
        let is_first = !bench.is_pending(&mut one).await;
        let is_second = !bench.is_pending(&mut other).await;
        assert!(is_first != is_second);
        let (woken, mut asleep) = if is_first { (first, other) } else { (second, one) };
        assert_eq!(bench.claim(woken, &["send"], 5).await.len(), 1);
        assert!(bench.is_pending(&mut asleep).await, "the cap is full again");
    }
}
