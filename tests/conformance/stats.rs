//! stats: what waits and runs, since when, what could start, and who is alive.

use flexiq::Job;
use flexiq::internals::{
    Beat, Change, Due, Filter, Limits, MOST_REPORT_BYTES, NewJob, QueueFacts, Scope, Snapshot, TaskFacts,
    WorkerId,
};

use crate::harness::*;

impl Bench {
    async fn stats(&self) -> Snapshot {
        self.store.stats().await.expect("the store answers")
    }

    async fn facts(&self, queue: &str, task: &str) -> TaskFacts {
        let found = self.stats().await.tasks;
        let found = found.into_iter().find(|of| of.counts.queue == queue && of.counts.task == task);
        found.expect("the task has jobs")
    }

    async fn queue(&self) -> QueueFacts {
        let found = self.stats().await.queues;
        found.into_iter().find(|of| *of.queue == *"q").expect("the queue is known")
    }

    /// How many of a task could start, and how many of its queue.
    async fn startable(&self, task: &str) -> (u64, u64) {
        (self.facts("q", task).await.startable, self.queue().await.startable)
    }

    async fn all(&self) -> Vec<Job> {
        self.store.list(Filter { limit: 10, ..Filter::default() }).await.expect("the store answers").jobs
    }

    async fn report(&self, worker: WorkerId, report: Option<&str>) {
        let report = report.map(str::to_owned);
        let beat =
            Beat { worker, lease: LEASE, every: BEAT, leases: Vec::new(), permits: Vec::new(), report };
        self.store.extend(beat).await.expect("the beat is answered");
    }
}

for_every_store! {
    async fn what_waits_and_runs_is_counted_by_queue_and_task(bench: Bench) {
        bench.enqueue_many("b", jobs("send", 2)).await;
        bench.enqueue_many("q", [jobs("send", 3), jobs_of("send", "a", 2)].concat()).await;
        bench.enqueue(NewJob { due: Due::In(secs(60)), ..job("later") }).await;
        let claimed = bench.claim(bench.living, &["send"], 2).await;
        bench.finish(bench.living, claimed[0].lease, succeed()).await;
        let found = bench.stats().await;
        let counts: Vec<_> = found.tasks.into_iter().map(|task| task.counts).collect();
        assert_eq!(counts, bench.store.counts().await.expect("answers").tasks);
        let seen: Vec<_> = counts.iter().map(|of| (&*of.queue, &*of.task, of.pending(), of.running)).collect();
        assert_eq!(seen, [("b", "send", 2, 0), ("q", "later", 1, 0), ("q", "send", 3, 1)]);
        let queues: Vec<_> = found.queues.iter().map(|of| (&*of.queue, of.pending, of.running)).collect();
        assert_eq!(queues, [("b", 2, 0), ("q", 4, 1)]);
        assert_eq!(found.at, START);
    }

    async fn a_task_of_which_no_job_is_left_is_not_told(bench: Bench) {
        bench.enqueue_many("q", [jobs("send", 1), jobs_of("part", "a", 1)].concat()).await;
        for claimed in bench.claim(bench.living, &["send", "part"], 2).await {
            bench.finish(bench.living, claimed.lease, succeed()).await;
        }
        assert_eq!(bench.stats().await.tasks.len(), 2);
        for job in bench.all().await {
            bench.store.delete(job.id).await.expect("it is deleted");
        }
        assert_eq!(bench.stats().await.tasks, []);
    }

    async fn counts_of_partitions_outlive_them(bench: Bench) {
        bench.enqueue_many("q", [jobs_of("send", "a", 2), jobs_of("send", "b", 1), jobs("send", 1)].concat()).await;
        let claimed = bench.claim(bench.living, &["send"], 4).await;
        let facts = bench.facts("q", "send").await;
        assert_eq!((facts.counts.running, facts.in_partitions), (4, 0));
        for claimed in claimed {
            bench.finish(bench.living, claimed.lease, succeed()).await;
        }
        let counts = bench.counts("send").await;
        assert_eq!((counts.succeeded, counts.running, counts.ready), (4, 0, 0));
    }

    async fn the_oldest_ready_job_is_told_behind_all_that_goes_before_it(bench: Bench) {
        bench.enqueue(NewJob { priority: -5, ..job("send") }).await;
        bench.hands.advance(secs(1));
        bench.enqueue_many("q", jobs_of("send", "a", 3)).await;
        bench.enqueue(NewJob { priority: 7, ..job("send") }).await;
        assert_eq!(bench.facts("q", "send").await.oldest_ready_at, Some(START));
        bench.set_task("send", Change::Paused(true)).await;
        assert_eq!(bench.facts("q", "send").await.oldest_ready_at, Some(START), "a pause hides nothing");
    }

    async fn the_oldest_of_many_partitions_is_told_whatever_its_priority_and_gate(bench: Bench) {
        bench.partitioning("send", Limits::default(), cap(1)).await;
        bench.enqueue_many("q", jobs_of("send", "c", 1)).await;
        assert_eq!(bench.claim(bench.living, &["send"], 1).await.len(), 1);
        bench.enqueue_many("q", vec![NewJob { priority: -1, ..job_of("send", "c") }]).await;
        bench.hands.advance(secs(1));
        bench.enqueue_many("q", ["a", "b", "c", "d"].map(|of| job_of("send", of)).to_vec()).await;
        let facts = bench.facts("q", "send").await;
        assert_eq!((facts.oldest_ready_at, facts.in_partitions, facts.startable), (Some(START), 5, 3));
    }

    async fn what_is_not_ready_is_not_the_oldest(bench: Bench) {
        bench.enqueue(NewJob { due: Due::In(secs(60)), ..job("send") }).await;
        assert_eq!(bench.facts("q", "send").await.oldest_ready_at, None);
        bench.pass(secs(60)).await;
        assert_eq!(bench.facts("q", "send").await.oldest_ready_at, Some(START + secs(60)));
        bench.claim(bench.living, &["send"], 1).await;
        assert_eq!(bench.facts("q", "send").await.oldest_ready_at, None);
    }

    async fn the_oldest_run_is_told_until_it_ends(bench: Bench) {
        bench.enqueue_many("q", jobs("send", 3)).await;
        let first = bench.claim(bench.living, &["send"], 1).await;
        bench.hands.advance(secs(1));
        bench.claim(bench.living, &["send"], 1).await;
        assert_eq!(bench.facts("q", "send").await.oldest_run_at, Some(START));
        bench.finish(bench.living, first[0].lease, succeed()).await;
        assert_eq!(bench.facts("q", "send").await.oldest_run_at, Some(START + secs(1)));
    }

    async fn a_cap_and_a_rate_leave_startable_what_they_let_through(bench: Bench) {
        bench.enqueue_many("q", jobs("send", 9)).await;
        assert_eq!(bench.startable("send").await, (9, 9));
        bench.set_task("send", Change::MaxConcurrent(Some(5))).await;
        bench.claim(bench.living, &["send"], 1).await;
        assert_eq!(bench.startable("send").await, (4, 4));
        bench.set_task("send", Change::Rates(Some(rates("2/m")))).await;
        bench.claim(bench.living, &["send"], 1).await;
        assert_eq!(bench.startable("send").await, (1, 1));
        bench.claim(bench.living, &["send"], 1).await;
        assert_eq!(bench.startable("send").await, (0, 0));
        bench.hands.advance(secs(60));
        assert_eq!(bench.startable("send").await, (2, 2));
    }

    async fn behind_a_queue_that_is_shut_nothing_of_it_is_startable(bench: Bench) {
        bench.enqueue_many("q", [jobs("send", 4), jobs("other", 4)].concat()).await;
        assert_eq!(bench.queue().await.startable, 8);
        bench.set_queue(Change::MaxConcurrent(Some(3))).await;
        assert_eq!(bench.queue().await.startable, 3);
        bench.set_queue(Change::Paused(true)).await;
        assert_eq!(bench.startable("send").await, (4, 0), "the task's own gates are open");
    }

    async fn partitions_leave_startable_what_each_lets_through(bench: Bench) {
        bench.partitioning("send", Limits::default(), cap(2)).await;
        bench.enqueue_many("q", [jobs_of("send", "a", 5), jobs_of("send", "b", 1), jobs("send", 3)].concat()).await;
        assert_eq!(bench.startable("send").await, (6, 6));
        bench.set_partition("send", "a", Change::Paused(true)).await;
        assert_eq!(bench.startable("send").await, (4, 4));
        bench.set_task("send", Change::MaxConcurrent(Some(2))).await;
        assert_eq!(bench.startable("send").await, (2, 2));
    }

    async fn what_shuts_a_gate_is_told_as_explain_tells_it(bench: Bench) {
        bench.declaring(&[("send", Limits { rates: rates("1/h"), ..cap(1) })]).await;
        bench.set_queue(Change::MaxConcurrent(Some(1))).await;
        bench.enqueue_many("q", jobs("send", 2)).await;
        bench.claim(bench.living, &["send"], 1).await;
        bench.set_task("send", Change::Paused(true)).await;
        let waiting = bench.all().await;
        let waiting = waiting.iter().find(|job| job.state.is_pending()).expect("one waits");
        let of_task = bench.facts("q", "send").await.shut_by;
        let of_queue = bench.queue().await.shut_by;
        let told = bench.explain(waiting.id).await.causes;
        assert_eq!((of_queue.len(), of_task.len()), (1, 3));
        assert!(of_queue.iter().chain(&of_task).all(|cause| told.contains(cause)), "{told:?}");
        assert_eq!(told.len(), 4);
    }

    async fn who_lives_is_told_with_what_it_declares_the_oldest_first(bench: Bench) {
        bench.hands.advance(secs(1));
        let of_send = bench.taking("emails", "send", cap(3)).await;
        bench.hands.advance(secs(2));
        bench.beat(of_send, &[]).await;
        let found = bench.stats().await;
        let [living, sender] = &found.workers[..] else { panic!("two live: {:?}", found.workers) };
        assert_eq!((living.worker, living.since, living.beat_at), (bench.living, START, START));
        assert_eq!((living.declared.len(), living.report.as_ref()), (0, None));
        let (since, beat_at) = (START + secs(1), START + secs(3));
        assert_eq!((sender.worker, sender.since, sender.beat_at), (of_send, since, beat_at));
        assert_eq!(sender.label, "host:1");
        let declared = [
            (Scope::Queue(name("emails")), Limits::default()),
            (Scope::Task(name("send")), cap(3)),
            (Scope::EachPartition(name("send")), Limits::default()),
        ];
        assert_eq!(sender.declared, declared);
        assert_eq!(found.homes, [(name("send"), name("emails"))]);
        assert_eq!(found.standings, bench.store.limits().await.expect("answers"));
        assert_eq!(found.stale, 0);
    }

    async fn who_is_silent_for_a_lease_or_has_gone_is_not_told(bench: Bench) {
        let silent = bench.worker().await;
        let gone = bench.worker().await;
        bench.store.retire(gone).await.expect("retires");
        let alive = async || bench.stats().await.workers.iter().map(|of| of.worker).collect::<Vec<_>>();
        assert_eq!(alive().await, [bench.living, silent]);
        bench.pass(LEASE).await;
        assert_eq!(alive().await, [bench.living]);
        bench.beat(silent, &[]).await;
        assert_eq!(alive().await, [bench.living, silent]);
    }

    async fn a_report_is_kept_until_its_worker_goes(bench: Bench) {
        let report = async || bench.stats().await.workers.pop().expect("one lives").report;
        let worker = bench.worker().await;
        assert_eq!(report().await, None);
        bench.report(worker, Some("one")).await;
        assert_eq!(report().await.as_deref(), Some("one"));
        bench.report(worker, Some("two")).await;
        bench.report(worker, None).await;
        assert_eq!(report().await.as_deref(), Some("two"), "nothing new is no news");
        bench.register(worker).await;
        assert_eq!(report().await.as_deref(), Some("two"));
        bench.store.retire(worker).await.expect("retires");
        bench.report(worker, Some("three")).await;
        bench.register(worker).await;
        assert_eq!(report().await, None, "one that is not known says nothing");
    }

    async fn a_report_that_is_too_long_is_not_kept(bench: Bench) {
        bench.report(bench.living, Some("short")).await;
        bench.report(bench.living, Some(&"x".repeat(MOST_REPORT_BYTES + 1))).await;
        let longest = "x".repeat(MOST_REPORT_BYTES);
        let kept = async || bench.stats().await.workers.pop().expect("one lives").report;
        assert_eq!(kept().await.as_deref(), Some("short"));
        bench.report(bench.living, Some(&longest)).await;
        assert_eq!(kept().await, Some(longest));
    }

    async fn a_hold_is_over_by_itself(bench: Bench) {
        use flexiq::internals::{Finish, Held, Hold, Transition};
        bench.enqueue_many("q", jobs("send", 2)).await;
        let claimed = bench.claim(bench.living, &["send"], 1).await;
        let hold = Some(Hold { what: Held::Task, length: secs(30) });
        let finish = Finish { hold, ..Finish::new(claimed[0].lease, Transition::Release) };
        bench.turn(bench.living, vec![finish], None).await;
        assert_eq!(bench.startable("send").await, (0, 0));
        assert_eq!(bench.facts("q", "send").await.shut_by.len(), 1);
        bench.hands.advance(secs(30));
        assert_eq!(bench.startable("send").await, (2, 2));
        assert_eq!(bench.facts("q", "send").await.shut_by, []);
    }
}
