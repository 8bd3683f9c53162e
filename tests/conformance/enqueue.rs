//! enqueue: all or nothing, the same id again, and where a job goes.

use flexiq::internals::{Due, ScheduledReason};
use flexiq::internals::{Enqueue, NewJob};
use flexiq::{Error, State};

use crate::harness::*;

for_every_store! {
    async fn a_job_that_is_due_now_is_ready_and_as_old_as_the_stores_now(bench: Bench) {
        let mut past = job("send");
        past.due = Due::At(START - secs(60));
        let id = bench.enqueue(past).await;
        let job = bench.job(id).await;
        assert_eq!(job.state, State::Ready);
        assert_eq!(job.due_at, START.into());
        assert_eq!(job.enqueued_at, START.into());
    }

    async fn a_delayed_job_is_scheduled_for_its_due_time(bench: Bench) {
        let mut later = job("send");
        later.due = Due::In(secs(5));
        let id = bench.enqueue(later).await;
        let job = bench.job(id).await;
        assert_eq!(job.state, State::Scheduled(ScheduledReason::Delay));
        assert_eq!(job.due_at, (START + secs(5)).into());
        assert_eq!(bench.counts("send").await.scheduled, 1);
    }

    async fn everything_a_call_sets_comes_back_with_its_claim(bench: Bench) {
        let mut full = job("send");
        full.partition = "acme".into();
        full.payload.bytes = b"{\"to\":\"a\"}".to_vec();
        full.priority = -7;
        full.outset.timeout = Some(secs(30));
        full.outset.max_retries = Some(2);
        full.outset.result_ttl = Some(secs(60));
        bench.enqueue(full.clone()).await;

        let worker = bench.worker().await;
        let claimed = bench.claim(worker, &["send"], 1).await.remove(0);
        assert_eq!(claimed.lease.job, full.id);
        assert_eq!(claimed.lease.run, 1);
        assert_eq!(claimed.partition, "acme");
        assert_eq!(claimed.payload, full.payload);
        assert_eq!(claimed.outset, full.outset);
        let shown = bench.job(full.id).await;
        assert_eq!((shown.priority, shown.partition.as_deref()), (-7, Some("acme")));
    }

    async fn a_payload_of_any_size_comes_back_as_it_was(bench: Bench) {
        let worker = bench.worker().await;
        for size in [0, 1, 511, 512, 513, 1 << 20] {
            let mut sized = job("send");
            sized.payload.bytes = (0..size).map(|byte| byte as u8).collect();
            bench.enqueue(sized.clone()).await;
            let claimed = bench.claim(worker, &["send"], 1).await.remove(0);
            assert_eq!(claimed.payload, sized.payload, "{size} bytes");
        }
    }

    async fn the_same_id_again_stores_nothing_and_answers_the_job_that_is_there(bench: Bench) {
        let first = job("send");
        let answers = bench.enqueue_many("q", vec![first.clone(), first.clone()]).await;
        assert_eq!(answers.iter().map(|answer| answer.is_duplicate).collect::<Vec<_>>(), [false, true]);
        let again = bench.enqueue_many("q", vec![first.clone()]).await;
        assert!(again[0].is_duplicate && again[0].id == first.id);
        assert_eq!(bench.counts("send").await.ready, 1);
    }

    async fn the_same_id_again_does_not_wake_a_job_that_has_ended(bench: Bench) {
        let first = job("send");
        bench.enqueue(first.clone()).await;
        let worker = bench.worker().await;
        let claimed = bench.claim(worker, &["send"], 1).await;
        bench.finish(worker, claimed[0].lease, succeed()).await;
        assert!(bench.enqueue_many("q", vec![first.clone()]).await[0].is_duplicate);
        assert_eq!(bench.state(first.id).await, State::Succeeded);
    }

    async fn a_batch_with_one_wrong_id_stores_nothing(bench: Bench) {
        let taken = bench.enqueue(job("send")).await;
        let mut clash = job("other");
        clash.id = taken;
        let good = job("other");
        let good_id = good.id;

        let batch = Enqueue { queue: name("q"), jobs: vec![good, clash], max_pending: None, producer: None };
        let error = bench.store.enqueue(batch).await.expect_err("the id belongs to another task");

        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        assert!(error.to_string().contains("this one is a job of task send"), "{error}");
        assert_eq!(bench.store.job(good_id).await.expect("answers"), None);
        assert_eq!(bench.counts("other").await.pending(), 0);
    }

    async fn an_id_of_another_queue_is_refused(bench: Bench) {
        let mut elsewhere = job("send");
        (elsewhere.id, elsewhere.is_given) = (bench.enqueue(job("send")).await, true);
        let batch = Enqueue { queue: name("other"), jobs: vec![elsewhere], max_pending: None, producer: None };
        let error = bench.store.enqueue(batch).await.expect_err("the id lies in queue q");
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }

    async fn a_refused_batch_does_not_undo_what_is_stored_beside_it(bench: Bench) {
        let taken = bench.enqueue(job("send")).await;
        // Sent together, so that a store which commits in groups puts them into one.
        let mut refused = Vec::new();
        let sent: Vec<_> = (0..50)
            .map(|number| {
                let mut jobs = vec![job("other")];
                if number % 2 == 1 {
                    refused.push(jobs[0].id);
                    jobs.push(NewJob { id: taken, ..job("other") });
                }
                bench.store.enqueue(Enqueue { queue: name("q"), jobs, max_pending: None, producer: None })
            })
            .collect();
        let mut stored = 0;
        for (number, answer) in sent.into_iter().enumerate() {
            assert_eq!(answer.await.is_ok(), number % 2 == 0);
            stored += u64::from(number % 2 == 0);
        }
        for id in refused {
            assert_eq!(bench.store.job(id).await.expect("answers"), None);
        }
        assert_eq!(bench.counts("other").await.ready, stored);
        assert_eq!(bench.claim(bench.living, &["other"], 100).await.len() as u64, stored);
    }

    async fn a_call_that_is_dropped_at_once_is_stored_wholly_or_not_at_all(bench: Bench) {
        let batch = vec![job("send"), job("send")];
        drop(bench.store.enqueue(Enqueue { queue: name("q"), jobs: batch, max_pending: None, producer: None }));
        let stored = bench.counts("send").await.ready;
        assert!(stored == 0 || stored == 2, "{stored}");
    }
}
