//! A hold: a run was told from the outside that nothing of its kind should start for a while.

use flexiq::State;
use flexiq::internals::{
    Change, Claimed, Due, Finish, Finished, Held, Hold, Limits, NewJob, ScheduledReason, Scope, Transition,
};

use crate::harness::*;

/// The end of a run that holds something for so many seconds and goes back to its old place.
fn holding(claimed: &Claimed, what: Held, seconds: u64) -> Finish {
    let hold = Some(Hold { what, length: secs(seconds) });
    Finish { hold, ..Finish::new(claimed.lease, Transition::PutBack) }
}

async fn hold(bench: &Bench, claimed: &Claimed, what: Held, seconds: u64) -> Finished {
    bench.turn(bench.living, vec![holding(claimed, what, seconds)], None).await.finished[0]
}

for_every_store! {
    // https://github.com/taskforcesh/bullmq/issues/2193: what became due during the stop was started.
    async fn nothing_that_is_held_starts_before_its_time_and_then_its_own_job_is_first(bench: Bench) {
        for what in [Held::Task, Held::Partition, Held::Queue] {
            let first = bench.enqueue(job_of("post", "a")).await;
            bench.enqueue(NewJob { due: Due::In(secs(5)), ..job_of("post", "a") }).await;
            bench.enqueue(NewJob { due: Due::In(secs(61)), ..job_of("post", "a") }).await;
            let claimed = bench.claim(bench.living, &["post"], 1).await;
            assert_eq!(hold(&bench, &claimed[0], what, 60).await, Finished::Done);
            for _ in 0..59 {
                bench.enqueue(job_of("post", "a")).await;
                bench.pass(secs(1)).await;
                assert!(bench.claim(bench.living, &["post"], 10).await.is_empty(), "{what:?}");
            }
            bench.pass(millis(999)).await;
            assert!(bench.claim(bench.living, &["post"], 10).await.is_empty(), "{what:?}");
            bench.hands.advance(millis(1));
            let claimed = bench.claim(bench.living, &["post"], 10).await;
            assert_eq!((claimed.len(), claimed[0].lease.job), (10, first), "{what:?}");
            assert_eq!((claimed[0].failures, claimed[0].deferrals, claimed[0].losses), (0, 1, 0));
            bench.hands.advance(secs(1));
            let rest = bench.claim(bench.living, &["post"], 100).await;
            assert_eq!(rest.len(), 52, "{what:?}");
            bench.turn(bench.living, finish_all(&[claimed, rest].concat()), None).await;
        }
    }

    async fn a_held_task_keeps_no_other_waiting(bench: Bench) {
        bench.enqueue(job("post")).await;
        bench.enqueue(job("other")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        hold(&bench, &claimed[0], Held::Task, 60).await;
        assert_eq!(bench.claim(bench.living, &["post", "other"], 5).await.len(), 1);
    }

    async fn a_put_back_job_waits_at_its_old_place(bench: Bench) {
        let first = bench.enqueue(job("post")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        bench.hands.advance(secs(1));
        bench.enqueue(job("post")).await;
        bench.finish(bench.living, claimed[0].lease, Transition::PutBack).await;
        let job = bench.job(first).await;
        assert_eq!((job.state, job.deferrals, job.failures, job.runs), (State::Ready, 1, 0, 1));
        assert_eq!(job.due_at, job.enqueued_at);
        assert_eq!(ids(&bench.claim(bench.living, &["post"], 1).await), [first]);
    }

    async fn a_put_back_job_that_was_cancelled_meanwhile_ends_as_cancelled(bench: Bench) {
        let id = bench.enqueue(job("post")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        bench.store.cancel(id).await.expect("answers");
        hold(&bench, &claimed[0], Held::Task, 60).await;
        assert_eq!((bench.state(id).await, bench.job(id).await.deferrals), (State::Cancelled, 0));
        bench.enqueue(job("post")).await;
        assert!(bench.claim(bench.living, &["post"], 5).await.is_empty(), "what it learned holds all the same");
    }

    async fn a_held_partition_keeps_no_other_waiting(bench: Bench) {
        bench.enqueue_many("q", jobs_of("post", "a", 2)).await;
        bench.enqueue_many("q", jobs_of("post", "b", 1)).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        hold(&bench, &claimed[0], Held::Partition, 60).await;
        let other = bench.claim(bench.living, &["post"], 5).await;
        assert_eq!(partitions(&other), ["b"]);
        bench.finish(bench.living, other[0].lease, succeed()).await;
        bench.pass(secs(60)).await;
        assert_eq!(partitions(&bench.claim(bench.living, &["post"], 5).await), ["a", "a"]);
    }

    async fn a_job_without_a_partition_holds_its_task_instead(bench: Bench) {
        bench.enqueue(job("post")).await;
        bench.enqueue(job_of("post", "a")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        hold(&bench, &claimed[0], Held::Partition, 60).await;
        assert!(bench.claim(bench.living, &["post"], 5).await.is_empty());
    }

    async fn a_held_queue_starts_nothing_of_any_task(bench: Bench) {
        bench.enqueue(job("post")).await;
        bench.enqueue(job("other")).await;
        bench.enqueue_many("elsewhere", jobs("post", 1)).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        hold(&bench, &claimed[0], Held::Queue, 60).await;
        assert!(bench.claim(bench.living, &["post", "other"], 5).await.is_empty());
        bench.pass(secs(60)).await;
        assert_eq!(bench.claim(bench.living, &["post", "other"], 5).await.len(), 2);
    }

    async fn a_shorter_hold_does_not_end_a_longer_one(bench: Bench) {
        bench.enqueue_many("q", jobs("post", 2)).await;
        let claimed = bench.claim(bench.living, &["post"], 2).await;
        hold(&bench, &claimed[0], Held::Task, 60).await;
        hold(&bench, &claimed[1], Held::Task, 10).await;
        bench.pass(secs(59)).await;
        assert!(bench.claim(bench.living, &["post"], 5).await.is_empty());
        bench.pass(secs(1)).await;
        assert_eq!(bench.claim(bench.living, &["post"], 5).await.len(), 2);
    }

    async fn a_hold_goes_with_any_end_of_a_run(bench: Bench) {
        bench.enqueue_many("q", jobs("post", 3)).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        let hold = Some(Hold { what: Held::Task, length: secs(60) });
        let kill = Transition::Kill { reason: flexiq::DeadReason::Deferrals, error: None };
        let finish = Finish { hold, ..Finish::new(claimed[0].lease, kill) };
        bench.turn(bench.living, vec![finish], None).await;
        assert!(bench.claim(bench.living, &["post"], 5).await.is_empty());
    }

    async fn a_run_that_lost_its_lease_holds_nothing(bench: Bench) {
        bench.enqueue_many("q", jobs("post", 2)).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        bench.finish(bench.living, claimed[0].lease, succeed()).await;
        assert_eq!(hold(&bench, &claimed[0], Held::Task, 60).await, Finished::LeaseLost);
        assert_eq!(bench.claim(bench.living, &["post"], 5).await.len(), 1);
    }

    async fn resuming_ends_a_hold(bench: Bench) {
        bench.enqueue(job("post")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        hold(&bench, &claimed[0], Held::Task, 60).await;
        let (worker, wait) = asleep(&bench, &["post"]).await;
        bench.set_task("post", Change::Paused(false)).await;
        assert_eq!(woken(wait).await, ["q"]);
        let claimed = bench.claim(worker, &["post"], 5).await;
        assert_eq!(claimed.len(), 1);
        bench.turn(worker, vec![holding(&claimed[0], Held::Queue, 60)], None).await;
        bench.set_queue(Change::Paused(false)).await;
        let claimed = bench.claim(worker, &["post"], 5).await;
        assert_eq!(claimed.len(), 1);
    }

    async fn the_end_of_a_hold_wakes_a_sleeper(bench: Bench) {
        bench.enqueue(job("post")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        hold(&bench, &claimed[0], Held::Task, 60).await;
        let (worker, wait) = asleep(&bench, &["post"]).await;
        bench.hands.advance(secs(60));
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(worker, &["post"], 5).await.len(), 1);
    }

    async fn the_turn_that_holds_claims_nothing_of_what_it_holds(bench: Bench) {
        bench.enqueue_many("q", jobs("post", 3)).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        let finishes = vec![holding(&claimed[0], Held::Task, 60)];
        let answer = bench.turn(bench.living, finishes, Some(claim(&["post"], 5))).await;
        assert!(answer.claimed.is_empty());
    }

    async fn a_hold_spends_no_try_and_a_deferral_after_it_is_as_ever(bench: Bench) {
        let id = bench.enqueue(job("post")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        hold(&bench, &claimed[0], Held::Task, 60).await;
        bench.pass(secs(60)).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        let defer =
            Transition::Schedule { reason: ScheduledReason::Deferral, due: Due::In(secs(1)), error: None };
        bench.finish(bench.living, claimed[0].lease, defer).await;
        let job = bench.job(id).await;
        assert_eq!((job.deferrals, job.failures), (2, 0));
    }

    async fn a_partition_that_time_has_opened_is_not_lost_to_whoever_looks_at_it_first(bench: Bench) {
        bench.enqueue_many("q", jobs_of("post", "a", 3)).await;
        bench.set_partition("post", "a", Change::Rates(Some(rates("1/s")))).await;
        let claimed = bench.claim(bench.living, &["post"], 5).await;
        bench.finish(bench.living, claimed[0].lease, succeed()).await;
        let (worker, wait) = asleep(&bench, &["post"]).await;
        bench.hands.advance(secs(1));
        let elsewhere = Scope::Queue(name("elsewhere"));
        bench.store.limit(elsewhere, Change::MaxConcurrent(None)).await.expect("the limit is set");
        assert_eq!(woken(wait).await, ["q"]);
        let claimed = bench.claim(worker, &["post"], 5).await;
        assert_eq!(claimed.len(), 1);

        bench.set_partition("post", "a", Change::Rates(None)).await;
        bench.turn(worker, vec![holding(&claimed[0], Held::Partition, 1)], Some(claim(&["post"], 5))).await;
        let (worker, wait) = asleep(&bench, &["post"]).await;
        bench.hands.advance(secs(1));
        bench.store.cancel(claimed[0].lease.job).await.expect("answers");
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(worker, &["post"], 5).await.len(), 1);
    }

    async fn the_end_of_a_hold_is_not_lost_to_a_limit_that_is_set_meanwhile(bench: Bench) {
        // One that has partitions, so that a change of limits looks at those that time has opened.
        bench.partitioning("digest", Limits::default(), cap(1)).await;
        bench.enqueue(job("post")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        let (keeper, wait) = asleep(&bench, &["post"]).await;
        hold(&bench, &claimed[0], Held::Queue, 1).await;
        bench.hands.advance(secs(1));
        bench.set_partition("digest", "a", Change::MaxConcurrent(None)).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(keeper, &["post"], 5).await.len(), 1);
    }

    async fn a_hold_goes_by_the_clock_also_where_the_starts_of_a_rate_are_ahead_of_it(bench: Bench) {
        bench.set_task("post", Change::Rates(Some(rates("100/s")))).await;
        bench.enqueue(job("post")).await;
        let claimed = bench.claim(bench.living, &["post"], 1).await;
        bench.hands.step_to(START - secs(3_600));
        hold(&bench, &claimed[0], Held::Task, 60).await;
        bench.pass(millis(59_999)).await;
        assert!(bench.claim(bench.living, &["post"], 5).await.is_empty());
        bench.hands.advance(millis(1));
        assert_eq!(bench.claim(bench.living, &["post"], 5).await.len(), 1);
    }
}
