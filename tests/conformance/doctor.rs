//! A store that is checked against itself: one that is sound has no findings, whatever is under way in it.
//!
//! Every other test for every store ends with such a check, too. What is found in one that was broken by hand is told in
//! `doctor_sqlite.rs` and `doctor_redis.rs`.

use flexiq::internals::{
    Change, DeadReason, Finding, Finish, Held, Hold, JobKey, LeaseId, Limits, NewJob, ProducerId, Repair,
    ScheduledReason, Scope, Transition, Value,
};
use flexiq::internals::{Due, Enqueue};
use flexiq::{JobId, State};

use crate::harness::*;
use crate::permits::*;

/// A job of each kind, in the queue "q".
pub(crate) struct Scene {
    pub(crate) ready: JobId,
    pub(crate) expiring: JobId,
    pub(crate) scheduled: JobId,
    pub(crate) running: LeaseId,
    pub(crate) succeeded: JobId,
    pub(crate) dead: JobId,
    /// Holds the one permit of the limit "api",
    pub(crate) holder: LeaseId,
    /// for which another job stands in line.
    pub(crate) in_line: JobId,
}

impl Bench {
    pub(crate) async fn look(&self) -> Vec<Finding> {
        self.store.check(Repair::Nothing).await.expect("the store is checked")
    }

    pub(crate) async fn repair(&self) -> Vec<Finding> {
        self.store.check(Repair::All).await.expect("the store is repaired")
    }

    /// Claims one job of a task that is surely the next.
    async fn start(&self, task: &str) -> LeaseId {
        self.claim(self.living, &[task], 1).await[0].lease
    }

    /// Brings jobs into each state of their life, with partitions, limits, holds and permits.
    pub(crate) async fn scene(&self) -> Scene {
        let succeeded = self.enqueue(job("send")).await;
        let lease = self.start("send").await;
        let value = Value::Json(vec![b'1'; 4_000]);
        self.finish(self.living, lease, Transition::Succeed { value, keep: KEEP }).await;
        let dead = self.enqueue(job("send")).await;
        let lease = self.start("send").await;
        let kill = Transition::Kill { reason: DeadReason::Never, error: Some("no".into()) };
        self.finish(self.living, lease, kill).await;
        let cancelled = self.enqueue(job("send")).await;
        self.store.cancel(cancelled).await.expect("cancelled");
        let expired = self.enqueue(NewJob { expires: Some(millis(1)), ..job("send") }).await;
        self.pass(millis(2)).await;
        assert_eq!(self.state(expired).await, State::Expired);

        self.enqueue(job("send")).await;
        let lease = self.start("send").await;
        let retry = Transition::Schedule {
            reason: ScheduledReason::Retry,
            due: Due::In(secs(500)),
            error: Some("later".into()),
        };
        self.finish(self.living, lease, retry).await;
        self.enqueue(job("send")).await;
        let running = self.start("send").await;
        self.enqueue(job("send")).await;
        let cancelled = self.start("send").await;
        self.store.cancel(cancelled.job).await.expect("requested");
        let [ready, scheduled, expiring] = [JobId::new(), JobId::new(), JobId::new()];
        let jobs = vec![
            NewJob { id: ready, ..job("send") },
            NewJob { id: scheduled, due: Due::In(secs(600)), ..job("send") },
            NewJob { id: expiring, expires: Some(secs(600)), ..job("send") },
        ];
        self.enqueue_many("q", jobs).await;

        self.partitions().await;
        let (holder, in_line) = self.named_limit().await;
        Scene { ready, expiring, scheduled, running, succeeded, dead, holder, in_line }
    }

    /// Partitions of the task "part": "a" is full, "b" is open, "c" is held, "d" has spent its rate, "e" waits for its time.
    async fn partitions(&self) {
        let each = Limits { max_concurrent: Some(1), rates: rates("1/m"), ..Limits::default() };
        self.partitioning("part", Limits::default(), each).await;
        for partition in ["a", "b", "c", "d"] {
            self.enqueue_many("q", jobs_of("part", partition, 3)).await;
        }
        self.enqueue(NewJob { due: Due::In(secs(700)), ..job_of("part", "e") }).await;
        let started = self.claim(self.living, &["part"], 4).await;
        let of = |partition: &str| {
            started.iter().find(|claimed| claimed.partition == partition).expect("one of each starts").lease
        };
        self.finish(self.living, of("b"), succeed()).await;
        let hold = Some(Hold { what: Held::Partition, length: secs(300) });
        self.turn(self.living, vec![Finish { hold, ..Finish::new(of("c"), succeed()) }], None).await;
        self.finish(self.living, of("d"), succeed()).await;
        self.set_partition("part", "b", Change::Rates(Some(vec![]))).await;
    }

    async fn named_limit(&self) -> (LeaseId, JobId) {
        let runs = self.runs(2).await;
        assert!(self.is_granted(&one_of(1, runs[0])).await);
        self.stand_in_line(&one_of(1, runs[1])).await;
        (runs[0], runs[1].job)
    }

    /// Lets all jobs of these tasks that are ready run to their end, as often as it takes.
    pub(crate) async fn drain(&self, tasks: &[&str]) -> usize {
        let mut ended = 0;
        loop {
            let claimed = self.claim(self.living, tasks, 100).await;
            if claimed.is_empty() {
                return ended;
            }
            ended += claimed.len();
            self.turn(self.living, finish_all(&claimed), None).await;
        }
    }
}

for_every_store! {
    async fn an_empty_store_has_no_findings(bench: Bench) {
        assert_eq!(bench.look().await, []);
        assert_eq!(bench.repair().await, []);
    }

    async fn a_sound_store_has_no_findings_whatever_is_under_way(bench: Bench) {
        bench.scene().await;
        let counts = bench.store.counts().await.expect("answers");
        assert_eq!(bench.look().await, []);
        assert_eq!(bench.repair().await, []);
        assert_eq!(bench.store.counts().await.expect("answers"), counts, "nothing is changed that is right");
        bench.pass(secs(3_000)).await;
        assert_eq!(bench.look().await, []);
    }

    async fn who_waits_is_no_finding(bench: Bench) {
        bench.set_queue(Change::MaxPending(Some(1))).await;
        let id = bench.enqueue(job("send")).await;
        let batch = Enqueue {
            queue: name("q"),
            jobs: jobs("send", 1),
            max_pending: None,
            producer: Some(ProducerId::new()),
        };
        bench.store.enqueue(batch).await.expect_err("there is no room");
        let mut ended = bench.store.ended(JobKey { queue: name("q"), id });
        assert!(bench.is_pending(&mut ended).await);
        let (_, wait) = asleep(&bench, &["other"]).await;
        bench.store.limit(Scope::Task(name("send")), Change::Paused(true)).await.expect("paused");
        let (_, other_wait) = asleep(&bench, &["send"]).await;
        assert_eq!(bench.look().await, []);
        assert_eq!(bench.repair().await, []);
        drop((wait, other_wait));
    }
}
