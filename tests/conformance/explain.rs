//! explain: what is told of a job in each state, of workers, and of what stands before it. Gates are in `explain_gates.rs`.

use flexiq::JobId;
use flexiq::internals::{
    Cause, Change, Due, Limits, LiveWorker, NewJob, ScheduledReason, Timestamp, Transition, WorkerId,
};

use crate::harness::*;

fn not_due(reason: ScheduledReason, due_at: Timestamp) -> [Cause; 1] {
    [Cause::NotDue { reason, due_at: due_at.into() }]
}

fn live(worker: WorkerId, links_task: bool, serves_queue: bool) -> LiveWorker {
    LiveWorker { worker, label: "host:1".into(), links_task, serves_queue }
}

fn no_worker(alive: Vec<LiveWorker>) -> [Cause; 1] {
    [Cause::NoWorker { total: alive.len() as u64, alive }]
}

for_every_store! {
    async fn a_job_that_is_not_there_is_not_explained(bench: Bench) {
        bench.enqueue(job("send")).await;
        assert_eq!(bench.store.explain(JobId::new()).await.expect("answers"), None);
    }

    async fn nothing_keeps_a_job_waiting_that_could_start_runs_or_has_ended(bench: Bench) {
        let worker = bench.declaring(&[("send", Limits::default())]).await;
        let id = bench.enqueue(job("send")).await;
        assert_eq!(bench.explain(id).await.causes, []);
        let claimed = bench.claim(worker, &["send"], 1).await;
        bench.set_task("send", Change::Paused(true)).await;
        assert_eq!(bench.explain(id).await.causes, [], "what runs is not kept by a pause");
        bench.finish(worker, claimed[0].lease, succeed()).await;
        assert_eq!(bench.explain(id).await.causes, []);
        assert_eq!(bench.explain(id).await.job, bench.job(id).await);
    }

    async fn a_scheduled_job_says_what_for_and_until_when(bench: Bench) {
        bench.set_task("send", Change::Paused(true)).await;
        let delayed = bench.enqueue(NewJob { due: Due::In(secs(60)), ..job("send") }).await;
        assert_eq!(bench.explain(delayed).await.causes, not_due(ScheduledReason::Delay, START + secs(60)));
        let of_partition = bench.enqueue(NewJob { due: Due::In(secs(60)), ..job_of("send", "a") }).await;
        assert_eq!(bench.explain(of_partition).await.causes, not_due(ScheduledReason::Delay, START + secs(60)));

        bench.set_task("send", Change::Paused(false)).await;
        for reason in [ScheduledReason::Retry, ScheduledReason::Deferral, ScheduledReason::Limit] {
            let id = bench.enqueue(job("send")).await;
            let claimed = bench.claim(bench.living, &["send"], 1).await;
            let later = Transition::Schedule { reason, due: Due::In(secs(7)), error: None };
            bench.finish(bench.living, claimed[0].lease, later).await;
            assert_eq!(bench.explain(id).await.causes, not_due(reason, START + secs(7)));
        }
    }

    async fn a_job_that_no_live_worker_takes_says_who_is_alive_and_what_they_lack(bench: Bench) {
        bench.store.retire(bench.living).await.expect("answers");
        let id = bench.enqueue(job("send")).await;
        assert_eq!(bench.explain(id).await.causes, no_worker(vec![]));

        let idle = bench.worker().await;
        let serving = bench.declaring(&[("other", Limits::default())]).await;
        let linking = bench.taking("elsewhere", "send", Limits::default()).await;
        let youngest = bench.worker().await;
        let alive = vec![
            live(linking, true, false),
            live(serving, false, true),
            live(youngest, false, false),
            live(idle, false, false),
        ];
        assert_eq!(bench.explain(id).await.causes, no_worker(alive));

        bench.declaring(&[("send", Limits::default())]).await;
        assert_eq!(bench.explain(id).await.causes, []);
        bench.hands.advance(LEASE);
        assert_eq!(bench.explain(id).await.causes, no_worker(vec![]), "all have been silent for a lease");
    }

    async fn a_worker_keeps_its_label_while_it_beats(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        bench.pass(secs(60)).await;
        assert_eq!(bench.explain(id).await.causes, no_worker(vec![live(bench.living, false, false)]));
    }

    async fn of_many_workers_ten_are_named_and_all_are_counted(bench: Bench) {
        let id = bench.enqueue(job("send")).await;
        for _ in 0..14 {
            bench.worker().await;
        }
        let [Cause::NoWorker { alive, total }] = &bench.explain(id).await.causes[..] else {
            panic!("nobody takes it")
        };
        assert_eq!((alive.len(), *total), (10, 15));
    }

    async fn what_stands_before_a_job_is_counted_in_its_lane_up_to_a_thousand(bench: Bench) {
        bench.declaring(&[("send", Limits::default()), ("other", Limits::default())]).await;
        bench.enqueue_many("q", [jobs("other", 3), jobs_of("send", "a", 3)].concat()).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        bench.hands.advance(millis(1));
        let id = bench.enqueue(job("send")).await;
        bench.enqueue(job("send")).await;
        bench.enqueue(NewJob { priority: -1, ..job("send") }).await;
        assert_eq!(bench.explain(id).await.causes, [Cause::Behind { jobs: 2, outranked: false }]);
        bench.enqueue(NewJob { priority: 1, ..job("send") }).await;
        assert_eq!(bench.explain(id).await.causes, [Cause::Behind { jobs: 3, outranked: true }]);

        let first = bench.enqueue(NewJob { priority: 9, ..job("send") }).await;
        let urgent = NewJob { priority: 8, ..job("send") };
        bench.enqueue_many("q", (0..1_200).map(|_| NewJob { id: JobId::new(), ..urgent.clone() }).collect()).await;
        assert_eq!(bench.explain(id).await.causes, [Cause::Behind { jobs: 1_000, outranked: true }]);
        assert_eq!(bench.explain(first).await.causes, []);
    }

    async fn explaining_wakes_nobody_and_changes_nothing(bench: Bench) {
        bench.declaring(&[("send", cap(1))]).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        let held = bench.claim(bench.living, &["send"], 1).await;
        let (worker, mut wait) = asleep(&bench, &["send"]).await;
        let listed = async || {
            let all = flexiq::internals::Filter { limit: 1_000, ..Default::default() };
            flexiq_tests::listed(&*bench.store, all).await.expect("answers")
        };
        let before = listed().await;
        for job in &before {
            bench.explain(job.id).await;
        }
        assert!(bench.is_pending(&mut wait).await);
        assert_eq!(listed().await, before);
        bench.finish(bench.living, held[0].lease, succeed()).await;
        assert_eq!(woken(wait).await, ["q"]);
        assert_eq!(bench.claim(worker, &["send"], 1).await.len(), 1);
    }
}
