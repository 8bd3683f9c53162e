//! retry and delete: what is done by hand to jobs that have ended.

use flexiq::internals::{DeadReason, ScheduledReason, Transition};
use flexiq::internals::{Finished, NewJob, Retried};
use flexiq::{JobId, State};

use crate::harness::*;

async fn killed(bench: &Bench) -> JobId {
    let id = bench.enqueue(job("send")).await;
    let held = bench.claim(bench.living, &["send"], 1).await;
    let kill = Transition::Kill { reason: DeadReason::Never, error: Some("it broke".into()) };
    bench.finish(bench.living, held[0].lease, kill).await;
    id
}

async fn retry(bench: &Bench, id: JobId) -> bool {
    bench.store.retry(id).await.expect("the store answers") == Retried::Done
}

for_every_store! {
    async fn a_dead_job_is_ready_again_with_fresh_budgets_and_the_next_run_number(bench: Bench) {
        let id = killed(&bench).await;
        bench.hands.advance(secs(3));
        assert!(retry(&bench, id).await);
        let job = bench.job(id).await;
        assert_eq!(job.state, State::Ready);
        assert_eq!((job.failures, job.deferrals, job.losses, job.runs), (0, 0, 0, 1));
        assert_eq!((job.last_error, job.ended_at), (None, None));
        assert_eq!(job.due_at, (START + secs(3)).into(), "it queues like a new one");
        assert_eq!(bench.claim(bench.living, &["send"], 1).await[0].lease.run, 2);
        assert_eq!(bench.counts("send").await.dead, 0);
    }

    async fn a_job_that_ran_out_of_workers_or_deferrals_has_all_its_budgets_again(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let worker = bench.worker().await;
        bench.claim(worker, &["send"], 1).await;
        bench.pass(LEASE).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let kill = Transition::Kill { reason: DeadReason::Deferrals, error: None };
        bench.finish(bench.living, held[0].lease, kill).await;
        let job = bench.job(id).await;
        assert_eq!((job.deferrals, job.losses), (1, 1));
        assert!(retry(&bench, id).await);
        let job = bench.job(id).await;
        assert_eq!((job.deferrals, job.losses, job.runs), (0, 0, 2));
    }

    async fn a_cancelled_or_expired_job_may_be_retried_and_does_not_expire_again(bench: Bench) {
        let expired = bench.enqueue(NewJob { expires: Some(secs(1)), ..job("send") }).await;
        bench.pass(secs(1)).await;
        let cancelled = bench.enqueue(job("send")).await;
        bench.store.cancel(cancelled).await.expect("answers");
        for id in [expired, cancelled] {
            assert!(retry(&bench, id).await);
        }
        bench.pass(secs(5)).await;
        assert_eq!(bench.claim(bench.living, &["send"], 10).await.len(), 2);
    }

    async fn a_job_that_was_cancelled_while_it_ran_may_be_retried(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        bench.store.cancel(id).await.expect("answers");
        bench.finish(bench.living, held[0].lease, Transition::Cancel).await;
        assert!(retry(&bench, id).await);
        assert!(!bench.job(id).await.cancel_requested);
        let held = bench.claim(bench.living, &["send"], 1).await;
        let again = Transition::Schedule {
            reason: ScheduledReason::Retry,
            due: flexiq::internals::Due::NOW,
            error: None,
        };
        bench.finish(bench.living, held[0].lease, again).await;
        assert_eq!(bench.state(id).await, State::Ready, "the old request is forgotten");
    }

    async fn a_job_that_has_not_ended_or_has_succeeded_is_not_retried(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        assert!(!retry(&bench, id).await);
        let held = bench.claim(bench.living, &["send"], 1).await;
        assert!(!retry(&bench, id).await);
        bench.finish(bench.living, held[0].lease, succeed()).await;
        assert!(!retry(&bench, id).await);
        assert!(!retry(&bench, JobId::new()).await);
    }

    async fn a_run_of_the_old_generation_can_change_nothing(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let old = bench.claim(bench.living, &["send"], 1).await[0].lease;
        bench.finish(bench.living, old, Transition::Cancel).await;
        retry(&bench, id).await;
        bench.claim(bench.living, &["send"], 1).await;
        assert_eq!(bench.finish(bench.living, old, succeed()).await, Finished::LeaseLost);
    }

    async fn only_a_job_that_has_ended_is_deleted(bench: Bench) {
        let mut large = job("send");
        large.payload.bytes = vec![b' '; 4_096];
        let id = bench.enqueue(large).await;
        let delete = async || bench.store.delete(id).await.expect("the store answers");
        assert!(!delete().await);
        let held = bench.claim(bench.living, &["send"], 1).await;
        assert!(!delete().await);
        bench.finish(bench.living, held[0].lease, succeed()).await;
        assert!(delete().await);
        assert_eq!(bench.store.job(id).await.expect("answers"), None);
        assert!(!delete().await);
        assert_eq!(bench.counts("send").await.succeeded, 0);
    }
}
