//! ended: waiting for the end of a job costs nothing, and no end is missed.

use flexiq::internals::{DeadReason, Transition, Value};
use flexiq::internals::{JobKey, NewJob, Stored};
use flexiq::{JobId, State};

use crate::harness::*;

fn key(id: JobId) -> JobKey {
    JobKey { queue: name("q"), id }
}

fn state_of(stored: Option<Stored>) -> State {
    match stored.expect("the job is there") {
        Stored::Value(_) => State::Succeeded,
        Stored::Failure(failure) => failure.state,
    }
}

for_every_store! {
    async fn a_job_that_has_ended_is_answered_at_once(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        bench.finish(bench.living, held[0].lease, succeed()).await;
        assert_eq!(bench.store.ended(key(id)).await.expect("answers"), Some(Stored::Value(Value::Unit)));
    }

    async fn a_job_that_is_not_there_is_none(bench: Bench) {
        assert_eq!(bench.store.ended(key(JobId::new())).await.expect("answers"), None);
        let id = bench.enqueue(job("send")).await;
        let elsewhere = JobKey { queue: name("other"), id };
        assert_eq!(bench.store.ended(elsewhere).await.expect("answers"), None);
    }

    async fn everyone_who_waits_is_told_the_value(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let mut waiting: Vec<_> = (0..3).map(|_| bench.store.ended(key(id))).collect();
        for one in &mut waiting {
            assert!(bench.is_pending(one).await);
        }
        let value = Value::Json(b"[1]".to_vec());
        let transition = Transition::Succeed { value: value.clone(), keep: KEEP };
        bench.finish(bench.living, held[0].lease, transition).await;
        for one in waiting {
            assert_eq!(soon(one).await.expect("answers"), Some(Stored::Value(value.clone())));
        }
    }

    async fn every_way_to_end_is_told_and_a_retry_is_not_an_end(bench: Bench) {
        let ids: Vec<JobId> = {
            let mut ids = vec![bench.enqueue(NewJob { expires: Some(secs(5)), ..job("idle") }).await];
            for _ in 0..3 {
                ids.push(bench.enqueue(job("send")).await);
            }
            ids
        };
        let mut waiting: Vec<_> = ids.iter().map(|&id| bench.store.ended(key(id))).collect();
        for one in &mut waiting {
            assert!(bench.is_pending(one).await);
        }
        let worker = bench.worker().await;
        let mut wanted = claim(&["send"], 1);
        wanted.tasks[0].max_losses = 0;
        bench.turn(worker, vec![], Some(wanted)).await;
        let held = bench.claim(bench.living, &["send"], 1).await.remove(0);
        bench.finish(bench.living, held.lease, Transition::Release).await;
        assert!(bench.is_pending(&mut waiting[2]).await);
        let held = bench.claim(bench.living, &["send"], 1).await.remove(0);
        let kill = Transition::Kill { reason: DeadReason::Never, error: Some("why".into()) };
        bench.finish(bench.living, held.lease, kill).await;
        bench.store.cancel(ids[3]).await.expect("answers");
        bench.pass(LEASE).await;

        let mut states = Vec::new();
        for one in waiting {
            states.push(state_of(soon(one).await.expect("answers")));
        }
        assert_eq!(
            states,
            [State::Expired, State::Dead(DeadReason::Losses), State::Dead(DeadReason::Never), State::Cancelled]
        );
    }

    async fn a_failure_comes_with_its_story(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let kill = Transition::Kill { reason: DeadReason::Failures, error: Some("it broke".into()) };
        bench.finish(bench.living, held[0].lease, kill).await;
        let Some(Stored::Failure(failure)) = bench.store.ended(key(id)).await.expect("answers") else {
            panic!("a dead job has a story");
        };
        assert_eq!((failure.id, failure.task.as_str(), failure.failures), (id, "send", 1));
        assert_eq!(failure.last_error.as_deref(), Some("it broke"));
    }

    async fn one_who_gives_up_waiting_does_not_disturb_the_others(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        let mut first = bench.store.ended(key(id));
        let mut second = bench.store.ended(key(id));
        assert!(bench.is_pending(&mut first).await && bench.is_pending(&mut second).await);
        drop(first);
        bench.store.cancel(id).await.expect("answers");
        assert_eq!(state_of(soon(second).await.expect("answers")), State::Cancelled);
    }
}
