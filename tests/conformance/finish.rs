//! finish: each end of a run, its counters, and the fence.

use flexiq::State;
use flexiq::internals::{Claimed, Finish, Finished, JobKey, LeaseId, NewJob, Stored};
use flexiq::internals::{DeadReason, Due, ScheduledReason, Transition, Value};

use crate::harness::*;

async fn claimed_one(bench: &Bench) -> Claimed {
    bench.enqueue(job("send")).await;
    bench.claim(bench.living, &["send"], 1).await.remove(0)
}

fn retry_in(seconds: u64) -> Transition {
    Transition::Schedule {
        reason: ScheduledReason::Retry,
        due: Due::In(secs(seconds)),
        error: Some("it broke".into()),
    }
}

fn defer_in(seconds: u64) -> Transition {
    Transition::Schedule { reason: ScheduledReason::Deferral, due: Due::In(secs(seconds)), error: None }
}

for_every_store! {
    async fn a_success_ends_the_job_and_moves_no_counter(bench: Bench) {
        let held = claimed_one(&bench).await;
        bench.hands.advance(secs(2));
        assert_eq!(bench.finish(bench.living, held.lease, succeed()).await, Finished::Done);
        let job = bench.job(held.lease.job).await;
        assert_eq!(job.state, State::Succeeded);
        assert_eq!((job.runs, job.failures, job.deferrals, job.losses), (1, 0, 0, 0));
        assert_eq!(job.ended_at, Some((START + secs(2)).into()));
        let counts = bench.counts("send").await;
        assert_eq!((counts.running, counts.succeeded), (0, 1));
    }

    async fn a_value_of_any_kind_and_size_is_kept(bench: Bench) {
        for value in [
            Value::Unit,
            Value::Json(b"null".to_vec()),
            Value::Json(vec![b'7'; 512]),
            Value::Json(vec![b'7'; 1 << 20]),
            Value::TooLarge { size: 5_000_000, limit: 1 << 20 },
        ] {
            let held = claimed_one(&bench).await;
            let transition = Transition::Succeed { value: value.clone(), keep: KEEP };
            bench.finish(bench.living, held.lease, transition).await;
            let key = JobKey { queue: name("q"), id: held.lease.job };
            assert_eq!(bench.store.ended(key).await.expect("answers"), Some(Stored::Value(value)));
        }
    }

    async fn a_failure_is_counted_and_waits_for_its_retry(bench: Bench) {
        let held = claimed_one(&bench).await;
        bench.finish(bench.living, held.lease, retry_in(5)).await;
        let job = bench.job(held.lease.job).await;
        assert_eq!(job.state, State::Scheduled(ScheduledReason::Retry));
        assert_eq!((job.runs, job.failures, job.deferrals, job.losses), (1, 1, 0, 0));
        assert_eq!(job.last_error.as_deref(), Some("it broke"));
        assert_eq!(job.due_at, (START + secs(5)).into());

        bench.pass(millis(4_999)).await;
        assert!(bench.claim(bench.living, &["send"], 1).await.is_empty(), "not before its time");
        bench.pass(millis(1)).await;
        let again = bench.claim(bench.living, &["send"], 1).await;
        assert_eq!((again[0].lease.run, again[0].failures), (2, 1));
    }

    async fn a_deferral_is_counted_apart_and_keeps_the_last_error(bench: Bench) {
        let held = claimed_one(&bench).await;
        bench.finish(bench.living, held.lease, retry_in(0)).await;
        let held = bench.claim(bench.living, &["send"], 1).await.remove(0);
        bench.finish(bench.living, held.lease, defer_in(1)).await;
        let job = bench.job(held.lease.job).await;
        assert_eq!(job.state, State::Scheduled(ScheduledReason::Deferral));
        assert_eq!((job.failures, job.deferrals, job.losses), (1, 1, 0));
        assert_eq!(job.last_error.as_deref(), Some("it broke"));
    }

    async fn a_retry_that_is_due_at_once_is_ready_and_as_old_as_now(bench: Bench) {
        let held = claimed_one(&bench).await;
        bench.hands.advance(secs(1));
        bench.finish(bench.living, held.lease, retry_in(0)).await;
        let job = bench.job(held.lease.job).await;
        assert_eq!((job.state, job.due_at), (State::Ready, (START + secs(1)).into()));
    }

    async fn a_killed_job_is_dead_with_its_reason_and_its_counter(bench: Bench) {
        for (reason, failures, deferrals) in [
            (DeadReason::Failures, 1, 0),
            (DeadReason::Never, 1, 0),
            (DeadReason::Decode, 1, 0),
            (DeadReason::Deferrals, 0, 1),
        ] {
            let held = claimed_one(&bench).await;
            let kill = Transition::Kill { reason, error: Some("why".into()) };
            bench.finish(bench.living, held.lease, kill).await;
            let job = bench.job(held.lease.job).await;
            assert_eq!(job.state, State::Dead(reason));
            assert_eq!((job.failures, job.deferrals), (failures, deferrals), "{reason}");
            assert_eq!(job.last_error.as_deref(), Some("why"));
        }
        assert_eq!(bench.counts("send").await.dead, 4);
    }

    async fn a_release_moves_no_counter_and_the_job_is_ready_at_once(bench: Bench) {
        let held = claimed_one(&bench).await;
        bench.finish(bench.living, held.lease, Transition::Release).await;
        let job = bench.job(held.lease.job).await;
        assert_eq!(job.state, State::Ready);
        assert_eq!((job.runs, job.failures, job.deferrals, job.losses), (1, 0, 0, 0));
    }

    async fn a_cancelled_run_moves_no_counter(bench: Bench) {
        let held = claimed_one(&bench).await;
        bench.finish(bench.living, held.lease, Transition::Cancel).await;
        let job = bench.job(held.lease.job).await;
        assert_eq!(job.state, State::Cancelled);
        assert_eq!((job.runs, job.failures, job.deferrals, job.losses), (1, 0, 0, 0));
    }

    async fn only_the_newest_run_of_the_right_worker_may_finish(bench: Bench) {
        let held = claimed_one(&bench).await;
        let other = bench.worker().await;
        let wrong_run = LeaseId { run: held.lease.run + 1, ..held.lease };
        let unknown = LeaseId { job: flexiq::JobId::new(), run: 1 };
        assert_eq!(bench.finish(other, held.lease, succeed()).await, Finished::LeaseLost);
        assert_eq!(bench.finish(bench.living, wrong_run, succeed()).await, Finished::LeaseLost);
        assert_eq!(bench.finish(bench.living, unknown, succeed()).await, Finished::LeaseLost);
        assert_eq!(bench.state(held.lease.job).await, State::Running);
        assert_eq!(bench.finish(bench.living, held.lease, succeed()).await, Finished::Done);
    }

    async fn a_lost_lease_cannot_finish_its_job(bench: Bench) {
        let lost = bench.worker().await;
        let id = bench.enqueue(job("send")).await;
        let held = bench.claim(lost, &["send"], 1).await.remove(0);
        bench.pass(LEASE + secs(1)).await;
        let again = bench.claim(bench.living, &["send"], 1).await.remove(0);
        assert_eq!(again.lease, LeaseId { job: id, run: 2 });

        for transition in [
            succeed(),
            retry_in(1),
            Transition::Kill { reason: DeadReason::Never, error: None },
            Transition::Release,
            Transition::Cancel,
        ] {
            let before = bench.job(id).await;
            assert_eq!(bench.finish(lost, held.lease, transition).await, Finished::LeaseLost);
            assert_eq!(bench.job(id).await, before);
        }
    }

    async fn the_same_finish_again_changes_nothing(bench: Bench) {
        let held = claimed_one(&bench).await;
        bench.finish(bench.living, held.lease, retry_in(60)).await;
        let before = bench.job(held.lease.job).await;
        assert_eq!(bench.finish(bench.living, held.lease, retry_in(60)).await, Finished::LeaseLost);
        assert_eq!(bench.job(held.lease.job).await, before);
    }

    async fn finishes_of_one_turn_are_answered_in_order(bench: Bench) {
        let first = claimed_one(&bench).await;
        let second = claimed_one(&bench).await;
        let stranger = LeaseId { job: flexiq::JobId::new(), run: 1 };
        let finishes = [first.lease, stranger, second.lease]
            .map(|lease| Finish::new(lease, succeed()))
            .to_vec();
        let answer = bench.turn(bench.living, finishes, None).await;
        assert_eq!(answer.finished, [Finished::Done, Finished::LeaseLost, Finished::Done]);
    }

    async fn among_many_alike_each_finish_is_judged_for_itself(bench: Bench) {
        bench.enqueue_many("q", jobs("send", 60)).await;
        let held = bench.claim(bench.living, &["send"], 60).await;
        // Lost to another turn, and said twice in one.
        bench.finish(bench.living, held[30].lease, Transition::Release).await;
        let mut finishes = finish_all(&held);
        finishes.insert(10, Finish::new(held[2].lease, succeed()));
        let answer = bench.turn(bench.living, finishes, None).await;

        let lost = |index: &usize| answer.finished[*index] == Finished::LeaseLost;
        assert_eq!((0..answer.finished.len()).filter(lost).collect::<Vec<_>>(), [10, 31]);
        assert_eq!(bench.state(held[30].lease.job).await, State::Ready);
        let counts = bench.counts("send").await;
        assert_eq!((counts.ready, counts.running, counts.succeeded), (1, 0, 59));
        let key = JobKey { queue: name("q"), id: held[59].lease.job };
        assert_eq!(bench.store.ended(key).await.expect("answers"), Some(Stored::Value(Value::Unit)));
    }

    async fn a_finish_makes_room_before_the_claim_of_its_turn(bench: Bench) {
        let held = claimed_one(&bench).await;
        let finishes = vec![Finish::new(held.lease, Transition::Release)];
        let answer = bench.turn(bench.living, finishes, Some(claim(&["send"], 1))).await;
        assert_eq!(ids(&answer.claimed), [held.lease.job]);
        assert_eq!(answer.claimed[0].lease.run, 2);
    }

    async fn counters_are_never_decremented(bench: Bench) {
        let id = bench.enqueue(NewJob { ..job("send") }).await;
        for (transition, failures, deferrals) in
            [(retry_in(0), 1, 0), (defer_in(0), 1, 1), (Transition::Release, 1, 1), (retry_in(0), 2, 1)]
        {
            let held = bench.claim(bench.living, &["send"], 1).await.remove(0);
            bench.finish(bench.living, held.lease, transition).await;
            let job = bench.job(id).await;
            assert_eq!((job.failures, job.deferrals), (failures, deferrals));
        }
        assert_eq!(bench.job(id).await.runs, 4);
    }
}
