//! When a unique key is free again: its owner alone frees it, in the step in which it ends or starts, or time does.

use flexiq::internals::{DeadReason, Due, Finish, NewJob, Release, Transition};
use flexiq::{JobId, ScheduledReason, State};

use crate::harness::*;
use crate::unique::{AT_END, AT_START, is_free, only, owner, start};

fn later(reason: ScheduledReason) -> Transition {
    Transition::Schedule { reason, due: Due::In(secs(5)), error: None }
}

fn kill() -> Transition {
    Transition::Kill { reason: DeadReason::Never, error: None }
}

for_every_store! {
    async fn every_end_frees_the_key_and_nothing_before_it(bench: Bench) {
        for end in [succeed(), kill(), Transition::Cancel] {
            let first = owner(&bench).await;
            for reason in [ScheduledReason::Retry, ScheduledReason::Deferral] {
                let lease = start(&bench).await;
                assert!(!is_free(&bench).await, "it runs");
                bench.finish(bench.living, lease, later(reason)).await;
                assert!(!is_free(&bench).await, "{reason:?}");
                bench.pass(secs(5)).await;
            }
            let lease = start(&bench).await;
            bench.finish(bench.living, lease, Transition::Release).await;
            assert!(!is_free(&bench).await, "released");
            let lease = start(&bench).await;
            assert_eq!(lease.job, first);
            bench.finish(bench.living, lease, end.clone()).await;
            let next = owner(&bench).await;
            assert_ne!(next, first, "{end:?}");
            bench.store.cancel(next).await.expect("answers");
            assert!(is_free(&bench).await, "cancelled while it waits");
            let lease = start(&bench).await;
            bench.store.cancel(lease.job).await.expect("answers");
            assert!(!is_free(&bench).await, "it is told to stop, and runs");
            bench.finish(bench.living, lease, Transition::Cancel).await;
        }
    }

    async fn a_lost_lease_keeps_the_key_until_the_job_is_dead_of_it(bench: Bench) {
        let first = owner(&bench).await;
        let worker = bench.worker().await;
        bench.claim(worker, &["send"], 1).await;
        bench.pass(LEASE).await;
        assert_eq!(bench.state(first).await, State::Ready);
        assert!(!is_free(&bench).await, "it is lost and will run again");
        let mut poison = claim(&["send"], 1);
        poison.tasks[0].max_losses = 0;
        bench.turn(worker, vec![], Some(poison)).await;
        bench.pass(LEASE).await;
        assert!(matches!(bench.state(first).await, State::Dead(_)));
        assert!(is_free(&bench).await);
    }

    async fn expiring_and_cancelling_a_partition_free_keys(bench: Bench) {
        bench.enqueue(NewJob { expires: Some(secs(1)), ..only("a", AT_END) }).await;
        bench.pass(secs(1)).await;
        assert!(is_free(&bench).await, "expired");
        bench.enqueue(NewJob { partition: "p".into(), ..only("b", AT_END) }).await;
        bench.store.cancel_partition(name("send"), "p".into()).await.expect("answers");
        assert!(!bench.enqueue_many("q", vec![only("b", AT_END)]).await[0].is_duplicate);
    }

    // F46: a failed job that is kept must not free the key that the next one holds.
    async fn a_job_that_has_ended_frees_nothing_that_another_has_taken(bench: Bench) {
        let dead = owner(&bench).await;
        let lease = start(&bench).await;
        bench.finish(bench.living, lease, kill()).await;
        let second = owner(&bench).await;
        assert!(bench.store.delete(dead).await.expect("answers"));
        assert_eq!(owner(&bench).await, second, "deleted");
        let lease = start(&bench).await;
        bench.finish(bench.living, lease, succeed()).await;
        let third = owner(&bench).await;
        bench.pass(KEEP + secs(3)).await;
        assert_eq!(bench.store.job(second).await.expect("answers"), None);
        assert_eq!(owner(&bench).await, third, "pruned");
    }

    async fn a_late_finish_frees_nothing(bench: Bench) {
        owner(&bench).await;
        let lost = bench.worker().await;
        let old = bench.claim(lost, &["send"], 1).await[0].lease;
        bench.pass(LEASE).await;
        let first = start(&bench).await.job;
        bench.finish(lost, old, succeed()).await;
        assert_eq!(owner(&bench).await, first);
    }

    async fn the_start_frees_a_key_that_is_held_until_then(bench: Bench) {
        let first = bench.enqueue(only("a", AT_START)).await;
        assert!(!is_free(&bench).await);
        let lease = start(&bench).await;
        let second = bench.enqueue(only("a", AT_START)).await;
        assert_ne!(second, first);
        // A retry does not take it again, and its end frees nothing.
        bench.finish(bench.living, lease, later(ScheduledReason::Retry)).await;
        assert_eq!(bench.enqueue(only("a", AT_START)).await, second);
        bench.store.cancel(first).await.expect("answers");
        assert_eq!(bench.enqueue(only("a", AT_START)).await, second);
        bench.store.cancel(second).await.expect("answers");
        assert!(is_free(&bench).await, "it ended without a start");
    }

    async fn a_key_is_held_for_a_time_beyond_the_end_but_not_beyond_that(bench: Bench) {
        for at_least in [Release::AtEnd { at_least: secs(10) }, Release::AtStart { at_least: secs(10) }] {
            let first = bench.enqueue(only("a", at_least)).await;
            let lease = start(&bench).await;
            bench.finish(bench.living, lease, succeed()).await;
            bench.pass(secs(10) - millis(1)).await;
            assert_eq!(owner(&bench).await, first);
            bench.pass(millis(1)).await;
            assert!(is_free(&bench).await);
            let lease = start(&bench).await;
            bench.finish(bench.living, lease, succeed()).await;
        }
        // At least: whoever lives longer has it longer.
        let first = bench.enqueue(only("a", Release::AtEnd { at_least: secs(10) })).await;
        bench.pass(secs(20)).await;
        assert_eq!(owner(&bench).await, first);
        let lease = start(&bench).await;
        bench.finish(bench.living, lease, succeed()).await;
        assert!(is_free(&bench).await);
    }

    async fn a_key_that_time_alone_frees_heeds_no_end_and_no_life(bench: Bench) {
        let first = bench.enqueue(only("a", Release::After(secs(10)))).await;
        bench.store.cancel(first).await.expect("answers");
        assert_eq!(owner(&bench).await, first);
        bench.pass(secs(10)).await;
        let second = bench.enqueue(only("a", Release::After(secs(10)))).await;
        assert_ne!(second, first);
        bench.pass(secs(10)).await;
        assert!(is_free(&bench).await, "the second still waits");
        assert_eq!(bench.state(second).await, State::Ready);
    }

    async fn deleting_a_job_by_hand_frees_what_time_would_hold(bench: Bench) {
        for release in [Release::AtEnd { at_least: secs(60) }, Release::After(secs(60))] {
            let first = bench.enqueue(only("a", release)).await;
            bench.store.cancel(first).await.expect("answers");
            assert!(!is_free(&bench).await);
            assert!(bench.store.delete(first).await.expect("answers"));
            let next = owner(&bench).await;
            assert_ne!(next, first);
            bench.store.cancel(next).await.expect("answers");
        }
    }

    async fn a_pruned_job_does_not_free_what_time_holds(bench: Bench) {
        let first = bench.enqueue(only("a", Release::AtEnd { at_least: KEEP + secs(60) })).await;
        let lease = start(&bench).await;
        bench.finish(bench.living, lease, succeed()).await;
        bench.pass(KEEP + secs(30)).await;
        assert_eq!(bench.store.job(first).await.expect("answers"), None);
        assert_eq!(owner(&bench).await, first, "its id is answered, though it is gone");
        bench.pass(secs(30)).await;
        assert!(is_free(&bench).await);
    }

    async fn many_ends_of_one_turn_free_their_keys(bench: Bench) {
        let batch: Vec<NewJob> = (0..60).map(|number| only(&number.to_string(), AT_END)).collect();
        bench.enqueue_many("q", batch.clone()).await;
        bench.enqueue_many("q", jobs("send", 10)).await;
        let held = bench.claim(bench.living, &["send"], 70).await;
        assert_eq!(held.len(), 70);
        let (ends, rest) = held.split_at(50);
        bench.turn(bench.living, finish_all(ends), None).await;
        let again: Vec<NewJob> = batch.into_iter().map(|job| NewJob { id: JobId::new(), ..job }).collect();
        let answers = bench.enqueue_many("q", again.clone()).await;
        let running = |job: &NewJob| rest.iter().any(|held| {
            answers.iter().zip(&again).any(|(answer, other)| other.id == job.id && answer.id == held.lease.job)
        });
        for (answer, job) in answers.iter().zip(&again) {
            assert_eq!(answer.is_duplicate, running(job));
        }
        let last: Vec<Finish> = finish_all(rest);
        bench.turn(bench.living, last, None).await;
    }
}
