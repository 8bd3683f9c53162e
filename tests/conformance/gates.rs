//! All gates together: all are asked, then all are charged, and what is refused spends nothing and costs nothing.

use flexiq::internals::{Change, Claim, NewJob, Room};

use crate::harness::*;

for_every_store! {
    async fn a_full_cap_spends_no_start(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        bench.set_task("send", Change::Rates(Some(rates("3/m")))).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        let mut held = bench.claim(bench.living, &["send"], 9).await;
        for _ in 0..10 {
            assert!(bench.claim(bench.living, &["send"], 9).await.is_empty());
        }
        for _ in 0..2 {
            held = bench.turn(bench.living, finish_all(&held), Some(claim(&["send"], 9))).await.claimed;
            assert_eq!(held.len(), 1);
        }
        held = bench.turn(bench.living, finish_all(&held), Some(claim(&["send"], 9))).await.claimed;
        assert!(held.is_empty(), "three have started");
    }

    // https://github.com/hatchet-dev/hatchet/pull/4804: a job that its rate refused kept a slot of the cap.
    async fn a_spent_rate_takes_no_slot_of_the_cap(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(2))).await;
        bench.set_task("send", Change::Rates(Some(rates("1/m")))).await;
        bench.enqueue_many("q", jobs("send", 9)).await;
        assert_eq!(bench.claim(bench.living, &["send"], 9).await.len(), 1);
        for _ in 0..5 {
            assert!(bench.claim(bench.living, &["send"], 9).await.is_empty());
        }
        assert_eq!(bench.counts("send").await.running, 1);
        bench.set_task("send", Change::Rates(None)).await;
        assert_eq!(bench.claim(bench.living, &["send"], 9).await.len(), 1, "the slot was never taken");
    }

    async fn what_the_queue_refuses_spends_nothing_of_the_task_and_the_other_way_round(bench: Bench) {
        bench.set_queue(Change::Rates(Some(rates("4/m")))).await;
        bench.set_task("send", Change::Rates(Some(rates("3/m")))).await;
        bench.enqueue_many("q", [jobs("send", 9), jobs("build", 9)].concat()).await;
        assert_eq!(bench.claim(bench.living, &["send"], 9).await.len(), 3);
        assert_eq!(bench.claim(bench.living, &["send", "build"], 9).await.len(), 1);
        bench.set_queue(Change::Rates(Some(rates("9/m")))).await;
        bench.set_task("send", Change::Rates(Some(rates("4/m")))).await;
        let claimed = bench.claim(bench.living, &["send"], 9).await;
        assert_eq!(claimed.len(), 1, "the task has spent three, whatever the queue refused");
        assert_eq!(bench.claim(bench.living, &["build"], 9).await.len(), 4, "the queue has spent five");
    }

    async fn a_refused_job_stays_where_it_is(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        bench.enqueue(job("send")).await;
        bench.claim(bench.living, &["send"], 1).await;
        let id = bench.enqueue(job("send")).await;
        let before = bench.job(id).await;
        for _ in 0..3 {
            bench.claim(bench.living, &["send"], 9).await;
            bench.pass(BEAT).await;
        }
        assert_eq!(bench.job(id).await, before);
    }

    async fn of_several_tasks_behind_one_queue_cap_the_best_starts(bench: Bench) {
        bench.set_queue(Change::MaxConcurrent(Some(2))).await;
        bench.set_task("build", Change::MaxConcurrent(Some(1))).await;
        bench.enqueue_many("q", jobs("send", 3)).await;
        bench.hands.advance(millis(1));
        let batch = (0..3).map(|_| NewJob { priority: 5, ..job("build") }).collect();
        bench.enqueue_many("q", batch).await;
        let claimed = bench.claim(bench.living, &["send", "build"], 9).await;
        assert_eq!(claimed.iter().map(|claimed| &*claimed.task).collect::<Vec<_>>(), ["build", "send"]);
    }

    // https://github.com/ixti/sidekiq-throttled/issues/131, to the number; any gate in `blocked.rs`.
    async fn a_thousand_capped_jobs_ahead_do_not_keep_a_free_one_waiting(bench: Bench) {
        bench.set_task("report", Change::MaxConcurrent(Some(8))).await;
        bench.enqueue_many("q", jobs("report", 1_000)).await;
        let room = |task: &str| Room { task: name(task), slot: 0, at_most: u32::MAX, max_losses: 3 };
        let wanted = || Claim { slots: vec![20], tasks: vec![room("report"), room("email")], lease: LEASE };
        assert_eq!(bench.turn(bench.living, vec![], Some(wanted())).await.claimed.len(), 8);
        let id = bench.enqueue(job("email")).await;
        let claimed = bench.turn(bench.living, vec![], Some(wanted())).await.claimed;
        assert_eq!(ids(&claimed), [id]);
    }

    // https://github.com/rails/solid_queue/pull/689: who came as the slot was freed was never started. Other orders of
    // events are drawn by `wakeups`.
    async fn no_interleaving_of_two_workers_loses_a_wake_up_or_passes_a_cap(bench: Bench) {
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        // A small generator, so that a failure is found again.
        let mut seed = 7_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        let (one, other) = (bench.worker().await, bench.worker().await);
        for round in 0..150 {
            let (worker, sleeper) = if next(2) == 0 { (one, other) } else { (other, one) };
            bench.enqueue_many("q", jobs("send", 2)).await;
            let held = bench.claim(worker, &["send"], 9).await;
            assert_eq!(held.len(), 1, "round {round}");
            let mut wait = bench.store.wait(interest(sleeper, &[("q", &["send"])]));
            if next(2) == 0 {
                assert!(bench.is_pending(&mut wait).await, "round {round}");
            }
            // The slot is freed with or without a claim that follows, before or after the other waits.
            let wanted = (next(3) == 0).then(|| claim(&["other"], 1));
            bench.turn(worker, finish_all(&held), wanted).await;
            assert_eq!(woken(wait).await, ["q"], "round {round}");
            let held = bench.claim(sleeper, &["send"], 9).await;
            assert_eq!(held.len(), 1, "round {round}");
            bench.turn(sleeper, finish_all(&held), Some(claim(&["send"], 9))).await;
            assert_eq!(bench.counts("send").await.ready, 0);
        }
    }
}
