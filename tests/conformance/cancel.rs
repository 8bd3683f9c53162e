//! cancel: a pending job ends at once, a running one is told to stop and never runs again.

use flexiq::internals::{Cancelled, NewJob};
use flexiq::internals::{DeadReason, Due, ScheduledReason, Transition};
use flexiq::{JobId, State};

use crate::harness::*;

async fn cancel(bench: &Bench, id: JobId) -> Option<Cancelled> {
    bench.store.cancel(id).await.expect("the store answers")
}

for_every_store! {
    async fn a_pending_job_ends_at_once(bench: Bench) {
        let ready = bench.enqueue(job("send")).await;
        let scheduled = bench.enqueue(NewJob { due: Due::In(secs(60)), ..job("send") }).await;
        for id in [ready, scheduled] {
            assert_eq!(cancel(&bench, id).await, Some(Cancelled::Done));
            let job = bench.job(id).await;
            assert_eq!((job.state, job.ended_at), (State::Cancelled, Some(START.into())));
        }
        bench.pass(secs(61)).await;
        assert!(bench.claim(bench.living, &["send"], 10).await.is_empty());
        let counts = bench.counts("send").await;
        assert_eq!((counts.pending(), counts.cancelled), (0, 2));
    }

    async fn a_running_job_is_told_to_stop(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        assert_eq!(cancel(&bench, id).await, Some(Cancelled::Requested));
        assert_eq!(cancel(&bench, id).await, Some(Cancelled::Requested));
        let job = bench.job(id).await;
        assert_eq!((job.state, job.cancel_requested), (State::Running, true));
        bench.finish(bench.living, held[0].lease, Transition::Cancel).await;
        assert_eq!(bench.state(id).await, State::Cancelled);
    }

    async fn a_cancelled_run_that_succeeds_is_a_success(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        cancel(&bench, id).await;
        bench.finish(bench.living, held[0].lease, succeed()).await;
        assert_eq!(bench.state(id).await, State::Succeeded);
    }

    async fn a_cancelled_run_never_leads_to_another_and_counts_nothing(bench: Bench) {
        for transition in [
            Transition::Schedule { reason: ScheduledReason::Retry, due: Due::NOW, error: Some("e".into()) },
            Transition::Schedule { reason: ScheduledReason::Deferral, due: Due::NOW, error: None },
            Transition::Kill { reason: DeadReason::Failures, error: Some("e".into()) },
            Transition::Release,
        ] {
            let id = bench.enqueue(job("send")).await;
            let held = bench.claim(bench.living, &["send"], 1).await;
            cancel(&bench, id).await;
            bench.finish(bench.living, held[0].lease, transition.clone()).await;
            let job = bench.job(id).await;
            assert_eq!(job.state, State::Cancelled, "{transition:?}");
            assert_eq!((job.failures, job.deferrals), (0, 0));
        }
    }

    async fn what_has_ended_stays_as_it_ended(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        bench.finish(bench.living, held[0].lease, succeed()).await;
        assert_eq!(cancel(&bench, id).await, Some(Cancelled::AlreadyEnded(State::Succeeded)));
        assert_eq!(cancel(&bench, JobId::new()).await, None);
    }

    async fn a_worker_is_called_when_one_of_its_jobs_is_cancelled(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let lease = bench.claim(bench.living, &["send"], 1).await[0].lease;
        let mut called = bench.store.called(bench.living);
        assert!(bench.is_pending(&mut called).await);
        cancel(&bench, id).await;
        soon(called).await.expect("the worker is called");
        assert_eq!(bench.beat(bench.living, &[lease]).await.cancelled, [lease]);
        // It knows now: the same cancel does not call it again.
        assert!(bench.is_pending(&mut bench.store.called(bench.living)).await);
    }

    async fn a_call_that_came_before_the_worker_listened_is_heard(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        bench.claim(bench.living, &["send"], 1).await;
        cancel(&bench, id).await;
        soon(bench.store.called(bench.living)).await.expect("the worker is called");
    }

    async fn a_call_that_comes_between_two_waits_is_heard(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        bench.claim(bench.living, &["send"], 1).await;
        assert!(bench.is_pending(&mut bench.store.called(bench.living)).await);
        cancel(&bench, id).await;
        soon(bench.store.called(bench.living)).await.expect("the worker is called");
    }

    async fn no_worker_is_called_for_anothers_job(bench: Bench) {
        let other = bench.worker().await;
        let id = bench.enqueue(job("send")).await;
        bench.claim(other, &["send"], 1).await;
        let mut called = bench.store.called(bench.living);
        assert!(bench.is_pending(&mut called).await);
        cancel(&bench, id).await;
        assert!(bench.is_pending(&mut called).await);
    }
}
