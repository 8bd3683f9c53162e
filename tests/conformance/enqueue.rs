//! enqueue: all or nothing, the same id again, and where a job goes.

use flexiq::{Error, State};

use crate::harness::*;

for_every_store! {
    async fn a_stored_job_is_claimed_finished_and_shown(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        assert_eq!(bench.state(id).await, State::Ready);

        let worker = bench.worker().await;
        let claimed = bench.claim(worker, &["send"], 10).await;
        assert_eq!(ids(&claimed), [id]);
        assert_eq!(bench.state(id).await, State::Running);

        bench.finish(worker, claimed[0].lease, succeed()).await;
        let job = bench.job(id).await;
        assert_eq!((job.state, job.runs), (State::Succeeded, 1));
    }

    async fn a_batch_with_one_wrong_id_stores_nothing(bench: Bench) {
        let taken = bench.enqueue(job("send")).await;
        let mut clash = job("other");
        clash.id = taken;
        let good = job("other");
        let good_id = good.id;

        let batch = flexiq::internals::Enqueue { queue: name("q"), jobs: vec![good, clash] };
        let error = bench.store.enqueue(batch).await.expect_err("the id belongs to another task");

        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        assert!(error.to_string().contains("this one is a job of task send"), "{error}");
        assert_eq!(bench.store.job(good_id).await.expect("answers"), None);
        assert_eq!(bench.counts("other").await.pending(), 0);
    }
}
