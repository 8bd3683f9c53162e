//! What holds for each partition, beside what holds for the task and the queue.

use flexiq::internals::{
    Cancelled, Change, Due, Enqueue, Limits, NewJob, Overrides, ScheduledReason, Scope, Standing, Swept,
    Transition,
};
use flexiq::{Error, State};

use crate::harness::*;

/// Enqueues one job of a partition, where so many may be pending.
async fn try_enqueue(bench: &Bench, partitions: &[&str], max_pending: u64) -> flexiq::Result<()> {
    let job = |partition: &&str| NewJob {
        max_pending_per_partition: Some(max_pending),
        ..job_of("export", partition)
    };
    let jobs = partitions.iter().map(job).collect();
    bench.store.enqueue(Enqueue { queue: name("q"), jobs, max_pending: None, producer: None }).await.map(drop)
}

fn full(error: &Error) -> (&str, u64, u64) {
    match error {
        Error::PartitionFull { task, partition, max_pending, pending } if task == "export" => {
            (partition, *max_pending, *pending)
        }
        other => panic!("{other:?}"),
    }
}

for_every_store! {
    async fn a_cap_holds_for_each_partition(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), cap(2)).await;
        bench.enqueue_many("q", jobs_of("export", "a", 5)).await;
        bench.enqueue_many("q", jobs_of("export", "b", 1)).await;
        let claimed = bench.claim(worker, &["export"], 25).await;
        assert_eq!(partitions(&claimed), ["a", "b", "a"]);
        assert!(claimed.iter().all(|claimed| claimed.is_capped));
        assert!(bench.claim(worker, &["export"], 25).await.is_empty());
        bench.finish(worker, claimed[0].lease, succeed()).await;
        assert_eq!(partitions(&bench.claim(worker, &["export"], 25).await), ["a"]);
    }

    async fn a_partition_at_its_cap_keeps_no_other_waiting(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), cap(1)).await;
        bench.enqueue_many("q", jobs_of("export", "a", 100)).await;
        assert_eq!(bench.claim(worker, &["export"], 25).await.len(), 1);
        bench.enqueue(job_of("export", "b")).await;
        assert_eq!(partitions(&bench.claim(worker, &["export"], 24).await), ["b"]);
    }

    async fn ten_partitions_of_five_under_a_total_of_twenty_run_twenty(bench: Bench) {
        let worker = bench.partitioning("export", cap(20), cap(5)).await;
        for partition in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] {
            bench.enqueue_many("q", jobs_of("export", partition, 10)).await;
        }
        let claimed = bench.claim(worker, &["export"], 100).await;
        assert_eq!(claimed.len(), 20);
        for partition in ["0", "5", "9"] {
            assert_eq!(partitions(&claimed).iter().filter(|of| **of == partition).count(), 2);
        }
        bench.turn(worker, finish_all(&claimed), None).await;
        assert_eq!(bench.claim(worker, &["export"], 100).await.len(), 20);
    }

    async fn a_dead_workers_partition_is_free_within_a_lease(bench: Bench) {
        let dead = bench.partitioning("export", Limits::default(), cap(1)).await;
        let next = bench.partitioning("export", Limits::default(), cap(1)).await;
        bench.enqueue_many("q", jobs_of("export", "a", 3)).await;
        let lost = bench.claim(dead, &["export"], 1).await[0].lease;
        for _ in 0..3 {
            bench.pass(BEAT).await;
            bench.beat(next, &[]).await;
        }
        assert!(bench.claim(next, &["export"], 10).await.is_empty());
        bench.pass(secs(1)).await;
        let held = bench.claim(next, &["export"], 10).await;
        assert_eq!(held.len(), 1);
        bench.finish(dead, lost, succeed()).await;
        assert!(bench.claim(next, &["export"], 10).await.is_empty(), "a late finish frees nothing");
    }

    async fn a_rate_holds_for_each_partition_and_opens_by_itself(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), rate("2/m")).await;
        bench.enqueue_many("q", jobs_of("export", "a", 5)).await;
        assert_eq!(bench.claim(worker, &["export"], 10).await.len(), 2);
        bench.pass(secs(30)).await;
        bench.enqueue_many("q", jobs_of("export", "b", 5)).await;
        assert_eq!(partitions(&bench.claim(worker, &["export"], 10).await), ["b", "b"]);
        bench.pass(secs(30)).await;
        assert_eq!(partitions(&bench.claim(worker, &["export"], 10).await), ["a", "a"]);
        bench.pass(secs(30)).await;
        assert_eq!(partitions(&bench.claim(worker, &["export"], 10).await), ["b", "b"]);
    }

    async fn a_claim_takes_all_that_time_has_opened_of_a_partition(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), rate("2/m")).await;
        for _ in 0..2 {
            bench.enqueue(job_of("export", "a")).await;
            assert_eq!(bench.claim(worker, &["export"], 10).await.len(), 1);
            bench.pass(secs(30)).await;
        }
        // Now one may start, and in 30 seconds two.
        bench.enqueue_many("q", jobs_of("export", "a", 5)).await;
        bench.pass(secs(30)).await;
        assert_eq!(bench.claim(worker, &["export"], 10).await.len(), 2);
    }

    async fn an_empty_partition_keeps_the_log_of_its_rate(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), rate("2/m")).await;
        bench.enqueue_many("q", jobs_of("export", "a", 2)).await;
        let held = bench.claim(worker, &["export"], 10).await;
        bench.turn(worker, finish_all(&held), None).await;
        bench.pass(secs(59)).await;
        bench.enqueue_many("q", jobs_of("export", "a", 2)).await;
        assert!(bench.claim(worker, &["export"], 10).await.is_empty());
        bench.pass(secs(1)).await;
        assert_eq!(bench.claim(worker, &["export"], 10).await.len(), 2);
    }

    async fn one_partition_may_be_set_apart_while_it_runs(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), cap(2)).await;
        bench.set_partition("export", "acme", Change::MaxConcurrent(Some(20))).await;
        for partition in ["acme", "other"] {
            bench.enqueue_many("q", jobs_of("export", partition, 60)).await;
        }
        let claimed = bench.claim(worker, &["export"], 100).await;
        assert_eq!(partitions(&claimed).iter().filter(|of| **of == "acme").count(), 20);
        assert_eq!(claimed.len(), 22);
        bench.set_partition("export", "acme", Change::MaxConcurrent(Some(21))).await;
        assert_eq!(partitions(&bench.claim(worker, &["export"], 100).await), ["acme"]);
        bench.set_partition("export", "acme", Change::MaxConcurrent(None)).await;
        bench.turn(worker, finish_all(&claimed), None).await;
        let claimed = bench.claim(worker, &["export"], 100).await;
        assert_eq!(partitions(&claimed), ["other", "acme", "other"], "one of acme still runs");
    }

    async fn what_each_partition_may_is_raised_for_all_that_wait(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), cap(1)).await;
        for partition in ["a", "b"] {
            bench.enqueue_many("q", jobs_of("export", partition, 5)).await;
        }
        assert_eq!(bench.claim(worker, &["export"], 100).await.len(), 2);
        assert!(bench.claim(worker, &["export"], 100).await.is_empty());
        let deployed = bench.partitioning("export", Limits::default(), cap(3)).await;
        assert_eq!(bench.claim(deployed, &["export"], 100).await.len(), 4);
        bench.partitioning("export", Limits::default(), Limits::default()).await;
        assert_eq!(bench.claim(deployed, &["export"], 100).await.len(), 4);
    }

    async fn a_paused_partition_starts_nothing_until_it_is_resumed(bench: Bench) {
        bench.set_partition("export", "a", Change::Paused(true)).await;
        bench.enqueue_many("q", jobs_of("export", "a", 2)).await;
        bench.enqueue_many("q", jobs_of("export", "b", 2)).await;
        assert_eq!(partitions(&bench.claim(bench.living, &["export"], 10).await), ["b", "b"]);
        bench.set_partition("export", "a", Change::Paused(false)).await;
        assert_eq!(partitions(&bench.claim(bench.living, &["export"], 10).await), ["a", "a"]);
    }

    async fn jobs_without_a_partition_are_not_limited_by_it(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), cap(1)).await;
        bench.enqueue_many("q", jobs("export", 3)).await;
        bench.enqueue_many("q", jobs_of("export", "a", 3)).await;
        assert_eq!(bench.claim(worker, &["export"], 10).await.len(), 4);
    }

    async fn a_sleeper_is_woken_when_a_partition_opens(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), cap(1)).await;
        bench.enqueue_many("q", jobs_of("export", "a", 3)).await;
        let held = bench.claim(worker, &["export"], 10).await;
        let (sleeper, wait) = asleep(&bench, &["export"]).await;
        bench.finish(worker, held[0].lease, succeed()).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(sleeper, &["export"], 10).await.len(), 1);

        let (sleeper, wait) = asleep(&bench, &["export"]).await;
        bench.enqueue(job_of("export", "b")).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(partitions(&bench.claim(sleeper, &["export"], 10).await), ["b"]);

        let (sleeper, wait) = asleep(&bench, &["export"]).await;
        bench.set_partition("export", "a", Change::MaxConcurrent(Some(2))).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(partitions(&bench.claim(sleeper, &["export"], 10).await), ["a"]);
    }

    async fn a_sleeper_is_woken_when_the_rate_of_a_partition_opens(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), rate("1/m")).await;
        bench.enqueue_many("q", jobs_of("export", "a", 2)).await;
        let held = bench.claim(worker, &["export"], 10).await;
        bench.finish(worker, held[0].lease, succeed()).await;
        let (sleeper, wait) = asleep(&bench, &["export"]).await;
        bench.hands.advance(secs(60));
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(sleeper, &["export"], 10).await.len(), 1);
    }

    async fn no_partition_takes_more_pending_jobs_than_it_may(bench: Bench) {
        try_enqueue(&bench, &["a", "a"], 3).await.expect("there is room");
        let error = try_enqueue(&bench, &["b", "a", "a"], 3).await.expect_err("one is too many");
        assert_eq!(full(&error), ("a", 3, 2));
        assert!(bench.store.counts().await.expect("answers").tasks[0].pending() == 2, "all or nothing");
        try_enqueue(&bench, &["a", "b"], 3).await.expect("there is room for one");
        assert_eq!(full(&try_enqueue(&bench, &["a"], 3).await.expect_err("full")), ("a", 3, 3));
        assert_eq!(bench.claim(bench.living, &["export"], 1).await.len(), 1);
        try_enqueue(&bench, &["a"], 3).await.expect("what runs is not pending");
        bench.set_partition("export", "a", Change::MaxPending(Some(5))).await;
        try_enqueue(&bench, &["a", "a"], 3).await.expect("what is set stands above");
        assert_eq!(full(&try_enqueue(&bench, &["a"], 3).await.expect_err("full")), ("a", 5, 5));
        try_enqueue(&bench, &["c"], 3).await.expect("another has room");
    }

    async fn scheduled_jobs_of_a_partition_are_pending_too(bench: Bench) {
        bench.enqueue(NewJob { due: Due::In(secs(60)), ..job_of("export", "a") }).await;
        assert_eq!(full(&try_enqueue(&bench, &["a"], 1).await.expect_err("full")), ("a", 1, 1));
        bench.pass(secs(60)).await;
        assert_eq!(full(&try_enqueue(&bench, &["a"], 1).await.expect_err("full")), ("a", 1, 1));
        let held = bench.claim(bench.living, &["export"], 1).await;
        let retry =
            Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(secs(60)), error: None };
        bench.finish(bench.living, held[0].lease, retry).await;
        assert_eq!(full(&try_enqueue(&bench, &["a"], 1).await.expect_err("full")), ("a", 1, 1));
        bench.store.cancel(held[0].lease.job).await.expect("answers");
        try_enqueue(&bench, &["a"], 1).await.expect("it is empty");
    }

    async fn a_full_queue_is_told_before_a_full_partition(bench: Bench) {
        try_enqueue(&bench, &["a"], 1).await.expect("there is room");
        let job = NewJob { max_pending_per_partition: Some(1), ..job_of("export", "a") };
        let batch = Enqueue { queue: name("q"), jobs: vec![job], max_pending: Some(1), producer: None };
        let error = bench.store.enqueue(batch).await.expect_err("both are full");
        assert!(matches!(error, Error::QueueFull { .. }), "{error:?}");
    }

    async fn all_jobs_of_a_partition_are_cancelled_and_no_other(bench: Bench) {
        bench.enqueue_many("q", jobs_of("export", "a", 3)).await;
        bench.enqueue_many("other", jobs_of("export", "a", 1)).await;
        let late = bench.enqueue(NewJob { due: Due::In(secs(60)), ..job_of("export", "a") }).await;
        let kept = bench.enqueue(job_of("export", "b")).await;
        let plain = bench.enqueue(job("export")).await;
        let held = bench.claim(bench.living, &["export"], 1).await;
        let cancel = || bench.store.cancel_partition(name("export"), "a".into());
        assert_eq!(cancel().await.expect("answers"), Swept { done: 4, requested: 1, more: false });
        assert_eq!(bench.state(late).await, State::Cancelled);
        assert_eq!((bench.state(kept).await, bench.state(plain).await), (State::Ready, State::Ready));
        assert!(bench.job(held[0].lease.job).await.cancel_requested);
        assert_eq!(bench.beat(bench.living, &[held[0].lease]).await.cancelled, [held[0].lease]);
        assert_eq!(cancel().await.expect("answers"), Swept { done: 0, requested: 1, more: false });
        assert_eq!(
            bench.store.cancel(late).await.expect("answers"),
            Some(Cancelled::AlreadyEnded(State::Cancelled))
        );
    }

    async fn a_cancel_of_many_is_bounded_and_says_that_there_is_more(bench: Bench) {
        bench.enqueue_many("q", jobs_of("export", "a", 1_001)).await;
        let cancel = || bench.store.cancel_partition(name("export"), "a".into());
        assert_eq!(cancel().await.expect("answers"), Swept { done: 1_000, requested: 0, more: true });
        assert_eq!(cancel().await.expect("answers"), Swept { done: 1, requested: 0, more: false });
        assert_eq!(bench.counts("export").await.cancelled, 1_001);
    }

    async fn what_holds_for_partitions_is_told(bench: Bench) {
        bench.partitioning("export", cap(20), cap(5)).await;
        bench.set_partition("export", "acme", Change::MaxConcurrent(Some(9))).await;
        bench.set_partition("export", "b", Change::Paused(true)).await;
        let standing = |scope, declared, overrides, is_paused| Standing { scope, declared, overrides, is_paused };
        let set = Overrides { max_concurrent: Some(9), ..Overrides::default() };
        let one = |partition: &str| Scope::Partition(name("export"), partition.into());
        let all = [
            standing(Scope::Task(name("export")), cap(20), Overrides::default(), false),
            standing(Scope::EachPartition(name("export")), cap(5), Overrides::default(), false),
            standing(one("acme"), cap(5), set, false),
            standing(one("b"), cap(5), Overrides::default(), true),
        ];
        assert_eq!(bench.store.limits().await.expect("answers"), all);
        bench.set_partition("export", "acme", Change::MaxConcurrent(None)).await;
        bench.set_partition("export", "b", Change::Paused(false)).await;
        assert_eq!(bench.store.limits().await.expect("answers"), all[..2]);
    }
}

// The model looks at every job for each.
for_every_store_with_bells! {
    async fn what_each_of_thousands_may_is_raised_for_all_step_by_step(bench: Bench) {
        let worker = bench.partitioning("export", Limits::default(), cap(1)).await;
        for hundred in 0..25 {
            let jobs = (0..100).flat_map(|number| jobs_of("export", &format!("p{hundred}-{number}"), 2));
            bench.enqueue_many("q", jobs.collect()).await;
        }
        for left in [1_000, 1_000, 500, 0] {
            assert_eq!(bench.claim(worker, &["export"], 2_500).await.len(), left);
        }
        let (sleeper, wait) = asleep(&bench, &["export"]).await;
        bench.partitioning("export", Limits::default(), cap(2)).await;
        assert_eq!(woken(wait).await, ["q"]);
        let (mut claimed, mut claims) = (0, 0);
        loop {
            let answer = bench.turn(sleeper, vec![], Some(claim(&["export"], 2_500))).await;
            (claimed, claims) = (claimed + answer.claimed.len(), claims + 1);
            if answer.claimed.is_empty() && !answer.more {
                break;
            }
        }
        assert_eq!(claimed, 2_500);
        assert!(claims < 10, "{claims} claims");
    }
}
