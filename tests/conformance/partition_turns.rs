//! The partitions of a task take turns; a task stands in its queue with the partition whose turn it is.

use flexiq::internals::{Due, Limits, NewJob, Transition};

use crate::harness::*;

for_every_store! {
    async fn partitions_take_turns_within_one_claim(bench: Bench) {
        bench.enqueue_many("q", jobs_of("export", "a", 4)).await;
        bench.enqueue_many("q", jobs_of("export", "b", 2)).await;
        bench.enqueue_many("q", jobs_of("export", "c", 1)).await;
        let claimed = bench.claim(bench.living, &["export"], 10).await;
        assert_eq!(partitions(&claimed), ["a", "b", "c", "a", "b", "a", "a"]);
    }

    async fn turns_go_on_from_claim_to_claim(bench: Bench) {
        bench.enqueue_many("q", jobs_of("export", "a", 3)).await;
        bench.enqueue_many("q", jobs_of("export", "b", 3)).await;
        let mut order = Vec::new();
        for _ in 0..6 {
            order.extend(bench.claim(bench.living, &["export"], 1).await);
        }
        assert_eq!(partitions(&order), ["a", "b", "a", "b", "a", "b"]);
    }

    async fn within_a_partition_the_oldest_goes_first(bench: Bench) {
        let mut enqueued = Vec::new();
        for partition in ["a", "b", "a", "b"] {
            enqueued.push(bench.enqueue(job_of("export", partition)).await);
            bench.hands.advance(millis(1));
        }
        let claimed = bench.claim(bench.living, &["export"], 4).await;
        assert_eq!(ids(&claimed), enqueued);
    }

    async fn a_partition_that_comes_stands_before_the_one_that_was_served_last(bench: Bench) {
        bench.enqueue_many("q", jobs_of("export", "a", 100)).await;
        assert_eq!(bench.claim(bench.living, &["export"], 25).await.len(), 25);
        bench.hands.advance(secs(1));
        bench.enqueue(job_of("export", "b")).await;
        let claimed = bench.claim(bench.living, &["export"], 2).await;
        assert_eq!(partitions(&claimed), ["b", "a"], "a job of a waits, b does not");
    }

    async fn a_partition_that_comes_waits_for_those_that_came_before_it(bench: Bench) {
        for partition in ["a", "b", "c"] {
            bench.enqueue_many("q", jobs_of("export", partition, 3)).await;
            bench.hands.advance(millis(1));
        }
        assert_eq!(partitions(&bench.claim(bench.living, &["export"], 1).await), ["a"]);
        bench.enqueue_many("q", jobs_of("export", "d", 2)).await;
        let claimed = bench.claim(bench.living, &["export"], 5).await;
        assert_eq!(partitions(&claimed), ["b", "c", "d", "a", "b"]);
    }

    async fn a_higher_priority_goes_first_whosever_turn_it_is(bench: Bench) {
        bench.enqueue_many("q", jobs_of("export", "a", 2)).await;
        bench.enqueue_many("q", jobs_of("export", "b", 2)).await;
        let urgent = |partition| NewJob { priority: 5, ..job_of("export", partition) };
        bench.enqueue_many("q", vec![urgent("b"), urgent("b")]).await;
        let claimed = bench.claim(bench.living, &["export"], 10).await;
        assert_eq!(partitions(&claimed), ["b", "b", "a", "b", "a", "b"]);
    }

    async fn a_task_stands_in_its_queue_with_the_partition_whose_turn_it_is(bench: Bench) {
        bench.enqueue(job_of("export", "a")).await;
        bench.hands.advance(millis(1));
        bench.enqueue(job("send")).await;
        bench.hands.advance(millis(1));
        bench.enqueue(job_of("export", "b")).await;
        bench.hands.advance(millis(1));
        bench.enqueue(job_of("export", "a")).await;
        let claimed = bench.claim(bench.living, &["export", "send"], 10).await;
        assert_eq!(partitions(&claimed), ["a", "", "b", "a"]);
    }

    async fn jobs_without_a_partition_stand_beside_those_with_one_by_age(bench: Bench) {
        for partition in ["", "a", "", "b", "a"] {
            bench.enqueue(job_of("export", partition)).await;
            bench.hands.advance(millis(1));
        }
        let claimed = bench.claim(bench.living, &["export"], 10).await;
        assert_eq!(partitions(&claimed), ["", "a", "", "b", "a"]);
    }

    async fn what_is_released_retried_or_becomes_due_takes_its_partitions_turn(bench: Bench) {
        bench.enqueue_many("q", jobs_of("export", "a", 3)).await;
        let held = bench.claim(bench.living, &["export"], 1).await;
        bench.hands.advance(millis(1));
        bench.enqueue_many("q", jobs_of("export", "b", 2)).await;
        bench.enqueue(NewJob { due: Due::In(secs(1)), ..job_of("export", "c") }).await;
        bench.finish(bench.living, held[0].lease, Transition::Release).await;
        let claimed = bench.claim(bench.living, &["export"], 2).await;
        assert_eq!(partitions(&claimed), ["b", "a"]);
        assert_eq!(claimed[1].lease.job, held[0].lease.job, "a released job is its partition's oldest");
        bench.hands.advance(secs(1));
        let claimed = bench.claim(bench.living, &["export"], 10).await;
        assert_eq!(partitions(&claimed), ["b", "c", "a", "a"]);
    }

    async fn a_cancelled_or_expired_job_leaves_its_partitions_turn_to_the_next(bench: Bench) {
        let first = bench.enqueue(job_of("export", "a")).await;
        bench.enqueue(NewJob { expires: Some(secs(1)), ..job_of("export", "b") }).await;
        bench.enqueue(job_of("export", "c")).await;
        bench.enqueue_many("q", jobs_of("export", "a", 1)).await;
        bench.store.cancel(first).await.expect("answers");
        bench.hands.advance(secs(1));
        let claimed = bench.claim(bench.living, &["export"], 10).await;
        assert_eq!(partitions(&claimed), ["c", "a"]);
    }

    async fn a_partition_may_have_any_name_of_up_to_two_hundred_bytes(bench: Bench) {
        let long = "ü".repeat(100);
        let names = ["a\0b", "a", "a\0", "\u{1}", "(é,\"x\")", "a\0b\0", &long, "\"\""];
        for name in names {
            bench.enqueue_many("q", jobs_of("export", name, 2)).await;
            bench.hands.advance(millis(1));
        }
        let worker = bench.partitioning("export", Limits::default(), cap(1)).await;
        let claimed = bench.claim(worker, &["export"], 100).await;
        assert_eq!(partitions(&claimed), names);
        let job = bench.job(claimed[6].lease.job).await;
        assert_eq!(job.partition.as_deref(), Some(&*long));
        bench.turn(worker, finish_all(&claimed), None).await;
        assert_eq!(partitions(&bench.claim(worker, &["export"], 100).await), names);
    }

    async fn a_thousand_partitions_are_served_once_each_before_any_is_served_twice(bench: Bench) {
        let names: Vec<String> = (0..1_000).map(|number| format!("p{number:04}")).collect();
        for _ in 0..2 {
            let batch = names.iter().map(|name| job_of("export", name)).collect();
            bench.enqueue_many("q", batch).await;
            bench.hands.advance(millis(1));
        }
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            for claimed in bench.claim(bench.living, &["export"], 100).await {
                assert!(seen.insert(claimed.partition.clone()), "{} is served twice", claimed.partition);
            }
        }
        assert_eq!(seen.len(), 1_000);
        assert_eq!(bench.claim(bench.living, &["export"], 1_000).await.len(), 1_000);
    }
}
