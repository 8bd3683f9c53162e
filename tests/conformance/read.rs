//! payload, counts, queues, declarations: what people are shown.

use flexiq::internals::{DeadReason, Due, ScheduledReason, Transition};
use flexiq::internals::{Declared, Hello, Limits, NewJob, Payload, WorkerId};
use flexiq::{JobId, State};

use crate::harness::*;

for_every_store! {
    async fn the_arguments_of_a_job_are_read_wherever_it_lies(bench: Bench) {
        for (queue, bytes) in [("a", 2), ("z", 400), ("q", 5_000)] {
            let payload = Payload { codec: 0, bytes: vec![b'7'; bytes] };
            let id = bench.enqueue_many(queue, vec![NewJob { payload: payload.clone(), ..job("send") }]).await[0].id;
            assert_eq!(bench.store.payload(id).await.expect("answers"), Some(payload.clone()));
            bench.store.cancel(id).await.expect("answers");
            assert_eq!(bench.store.payload(id).await.expect("answers"), Some(payload));
        }
        assert_eq!(bench.store.payload(JobId::new()).await.expect("answers"), None);
    }

    async fn counts_follow_every_move(bench: Bench) {
        bench.enqueue_many("q", (0..6).map(|_| job("send")).collect()).await;
        bench.enqueue(NewJob { due: Due::In(secs(60)), ..job("send") }).await;
        let held = bench.claim(bench.living, &["send"], 4).await;
        bench.finish(bench.living, held[0].lease, succeed()).await;
        let kill = Transition::Kill { reason: DeadReason::Never, error: None };
        bench.finish(bench.living, held[1].lease, kill).await;
        let retry =
            Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(secs(5)), error: None };
        bench.finish(bench.living, held[2].lease, retry).await;
        let counts = bench.counts("send").await;
        assert_eq!((counts.scheduled, counts.ready, counts.running), (2, 2, 1));
        assert_eq!((counts.succeeded, counts.dead, counts.pending()), (1, 1, 4));
    }

    async fn counts_are_by_queue_and_task_and_sorted(bench: Bench) {
        for (queue, task) in [("b", "y"), ("b", "x"), ("a", "y")] {
            let mut partitioned = job(task);
            partitioned.partition = "p".into();
            bench.enqueue_many(queue, vec![job(task), partitioned]).await;
        }
        let counts = bench.store.counts().await.expect("answers").tasks;
        let seen: Vec<_> = counts
            .iter()
            .map(|counts| (counts.queue.as_str(), counts.task.as_str(), counts.ready))
            .collect();
        assert_eq!(seen, [("a", "y", 2), ("b", "x", 2), ("b", "y", 2)]);
    }

    async fn queues_are_known_once_they_are_served_or_enqueued_to(bench: Bench) {
        bench.enqueue_many("b", vec![job("send")]).await;
        let hello = Hello {
            worker: WorkerId::new(),
            label: "host:2".into(),
            lease: LEASE,
            queues: vec![(name("a"), Limits::default())],
            tasks: vec![],
        };
        bench.store.register(hello).await.expect("registers");
        assert_eq!(bench.store.queues().await.expect("answers"), [name("a"), name("b")]);
    }

    async fn a_declaration_is_the_newest_workers(bench: Bench) {
        for declaration in ["{\"old\":1}", "{\"new\":2}"] {
            let hello = Hello {
                worker: WorkerId::new(),
                label: "host:2".into(),
                lease: LEASE,
                queues: vec![],
                tasks: vec![Declared {
                    task: name("send"),
                    queue: name("q"),
                    json: declaration.into(),
                    limits: Limits::default(),
                    per_partition: Limits::default(),
                    schedule: None,
                }],
            };
            bench.store.register(hello).await.expect("registers");
        }
        let declared = bench.store.declarations().await.expect("answers");
        assert_eq!(declared, [(name("send"), "{\"new\":2}".to_owned())]);
    }

    async fn leases_of_a_worker_that_retires_lapse_as_they_were(bench: Bench) {
        let worker = bench.worker().await;
        let id = bench.enqueue(job("send")).await;
        bench.claim(worker, &["send"], 1).await;
        bench.store.retire(worker).await.expect("retires");
        assert_eq!(bench.state(id).await, State::Running);
        bench.pass(LEASE).await;
        assert_eq!(bench.job(id).await.losses, 1);
    }
}
