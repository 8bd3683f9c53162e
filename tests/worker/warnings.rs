//! What is wrong with a store as a whole is found, and nothing that is not.

use std::sync::Arc;
use std::time::Duration;

use flexiq::internals::{
    Beat, Claim, Claimed, Declared, Due, Ended, Enqueue, Hello, Lapse, ManualClock, Name, NewJob, Outset,
    Payload, Report, Room, Runs, StoredSample, Turn,
};
use flexiq::{JobId, Limits, Queue, Scope, Warning, WorkerId};
use flexiq_tests::{START, soon};

use super::queue;

const EVERY: Duration = Duration::from_secs(300);
const LEASE: Duration = Duration::from_secs(10);

fn name(text: &str) -> Name {
    Name::new("test", text).expect("tests use valid names")
}

/// A store whose workers are played by the test.
struct Scene {
    queue: Queue,
    clock: ManualClock,
}

impl Scene {
    async fn new() -> Self {
        let (queue, clock) = queue().await;
        Self { queue, clock }
    }

    /// A worker that serves the queue "q" and declares a cap, or none, for each of these tasks.
    async fn worker(&self, label: &str, tasks: &[(&str, Option<u32>)]) -> WorkerId {
        let worker = WorkerId::new();
        let declared = |(task, cap): &(&str, Option<u32>)| Declared {
            task: name(task),
            queue: name("q"),
            json: "{}".into(),
            limits: Limits { max_concurrent: *cap, ..Limits::default() },
            per_partition: Limits::default(),
            schedule: None,
        };
        let hello = Hello {
            worker,
            label: label.into(),
            lease: LEASE,
            queues: vec![(name("q"), Limits::default())],
            tasks: tasks.iter().map(declared).collect(),
        };
        self.queue.below().register(hello).await.expect("it registers");
        worker
    }

    async fn enqueue(&self, task: &str, jobs: usize) {
        let job = |_| NewJob {
            id: JobId::new(),
            is_given: false,
            task: name(task),
            partition: String::new(),
            max_pending_per_partition: None,
            payload: Payload { codec: 0, bytes: b"{}".to_vec() },
            priority: 0,
            due: Due::NOW,
            expires: None,
            outset: Outset::default(),
            unique: None,
        };
        let jobs = (0..jobs).map(job).collect();
        let batch = Enqueue { queue: name("q"), jobs, max_pending: None, producer: None };
        self.queue.below().enqueue(batch).await.expect("stored");
    }

    async fn claim_one(&self, worker: WorkerId, task: &str) -> Claimed {
        let room = Room { task: name(task), slot: 0, at_most: 1, max_losses: 3 };
        let claim = Some(Claim { slots: vec![1], tasks: vec![room], lease: LEASE });
        let turn = Turn { worker, queue: name("q"), number: 1, finishes: vec![], claim };
        let mut answer = self.queue.below().turn(Arc::new(turn)).await.expect("answered");
        answer.claimed.pop().expect("one is ready")
    }

    /// Lets time pass, and a worker that holds these leases beat and report.
    async fn pass(&self, time: Duration, worker: WorkerId, held: &[&Claimed], report: Option<&Report>) {
        self.clock.advance(time);
        let beat = Beat {
            worker,
            lease: LEASE,
            every: LEASE / 3,
            leases: held.iter().map(|claimed| (claimed.lease, Lapse::Loss)).collect(),
            permits: Vec::new(),
            report: report.map(|report| serde_json::to_string(report).expect("plain data")),
        };
        let answer = self.queue.below().extend(beat).await.expect("answered");
        assert!(answer.lost.is_empty() && !answer.is_unknown, "{answer:?}");
    }

    /// Samples the store, which is due.
    async fn sample(&self) -> Vec<Warning> {
        let warnings = self.queue.sample().await.expect("the store answers").expect("a sample is due");
        assert_eq!(warnings, self.queue.warnings().await.expect("the store answers"));
        warnings
    }

    async fn warnings(&self) -> Vec<Warning> {
        self.queue.warnings().await.expect("the store answers")
    }
}

#[tokio::test]
async fn a_limit_that_lets_fewer_through_than_come_is_told_with_the_growth() {
    let scene = Scene::new().await;
    let worker = scene.worker("a:1", &[("slow", Some(1)), ("free", None)]).await;
    scene.enqueue("slow", 3).await;
    scene.enqueue("free", 3).await;
    let held = scene.claim_one(worker, "slow").await;
    assert_eq!(scene.sample().await, [], "one sample tells of no growth");
    scene.pass(EVERY, worker, &[&held], None).await;
    scene.enqueue("slow", 20).await;
    scene.enqueue("free", 20).await;
    let warnings = scene.sample().await;
    let [Warning::LimitTooLow { task, pending: 22, growth_per_hour: 240, causes, .. }] = &warnings[..] else {
        panic!("what is free is not limited: {warnings:?}")
    };
    assert_eq!((task.as_str(), causes.len()), ("slow", 1));
    scene.pass(EVERY, worker, &[&held], None).await;
    assert_eq!(scene.sample().await, [], "a long backlog that does not grow is a choice");
}

#[tokio::test]
async fn a_task_that_fills_a_worker_while_another_waits_longer_is_told() {
    let scene = Scene::new().await;
    let worker = scene.worker("a:1", &[("heavy", None), ("light", None)]).await;
    let report = |busy, running, is_plain| {
        let runs = Runs { queue: "q".into(), task: "heavy".into(), is_plain, running, ..Runs::default() };
        Report { async_slots: (10, busy), runs: vec![runs], ..Report::default() }
    };
    scene.enqueue("light", 1).await;
    scene.sample().await;
    let full = report(10, 6, false);
    scene.pass(EVERY, worker, &[], Some(&full)).await;
    let warnings = scene.sample().await;
    let [Warning::Starved { task, waits, by, held: 6, slots: 10, worker: full, .. }] = &warnings[..] else {
        panic!("light starves: {warnings:?}")
    };
    assert_eq!((&**task, *waits, &**by, full.worker, &*full.label), ("light", EVERY, "heavy", worker, "a:1"));
    for fine in [report(9, 6, false), report(10, 5, false), report(10, 6, true)] {
        scene.pass(Duration::from_secs(1), worker, &[], Some(&fine)).await;
        assert_eq!(scene.warnings().await, [], "{fine:?}");
    }
}

#[tokio::test]
async fn workers_that_declare_different_things_are_both_named() {
    let scene = Scene::new().await;
    let old = scene.worker("old:1", &[("send", Some(2)), ("same", Some(7))]).await;
    assert_eq!(scene.warnings().await, []);
    let new = scene.worker("new:2", &[("send", Some(5)), ("same", Some(7))]).await;
    let warnings = scene.warnings().await;
    let [Warning::DeclarationsDiffer { scope: Scope::Task(task), holds, other }] = &warnings[..] else {
        panic!("they differ in one thing: {warnings:?}")
    };
    assert_eq!((task.as_str(), holds.0.worker, other.0.worker), ("send", new, old));
    assert_eq!((holds.1.max_concurrent, other.1.max_concurrent), (Some(5), Some(2)));
    scene.queue.below().retire(old).await.expect("it goes");
    assert_eq!(scene.warnings().await, []);
}

#[tokio::test]
async fn jobs_that_nobody_takes_are_told() {
    let scene = Scene::new().await;
    scene.worker("a:1", &[("send", None)]).await;
    scene.enqueue("send", 1).await;
    scene.enqueue("renamed", 2).await;
    let warnings = scene.warnings().await;
    let [Warning::Stranded { task, jobs: 2, workers: 1, .. }] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(task, "renamed");
}

#[tokio::test]
async fn a_run_that_lasts_ten_times_as_long_as_usual_is_told() {
    let scene = Scene::new().await;
    let worker = scene.worker("a:1", &[("send", None)]).await;
    scene.enqueue("send", 1).await;
    let held = scene.claim_one(worker, "send").await;
    let report = |succeeded: u64| {
        let mut ended = Ended::default();
        ended.succeeded = succeeded;
        let ran_ms = 1_500 * succeeded;
        let runs = Runs { queue: "q".into(), task: "send".into(), ended, ran_ms, ..Runs::default() };
        Report { async_slots: (10, 1), runs: vec![runs], ..Report::default() }
    };
    let second = Duration::from_secs(1);
    scene.pass(second * 8, worker, &[&held], Some(&report(10))).await;
    scene.pass(second * 7, worker, &[&held], None).await;
    assert_eq!(scene.warnings().await, [], "ten times is not longer than ten times");
    scene.pass(second, worker, &[&held], None).await;
    let [Warning::RunTooLong { lasts, usual, .. }] = scene.warnings().await[..] else { panic!("it is told") };
    assert_eq!((lasts, usual), (second * 16, second * 3 / 2));
    scene.pass(second, worker, &[&held], Some(&report(9))).await;
    assert_eq!(scene.warnings().await, [], "too few are known");
}

#[tokio::test]
async fn nobody_samples_again_within_five_minutes() {
    let scene = Scene::new().await;
    scene.sample().await;
    scene.clock.advance(EVERY - Duration::from_millis(1));
    assert_eq!(scene.queue.sample().await.expect("answered"), None);
    scene.clock.advance(Duration::from_millis(1));
    scene.sample().await;
    scene.clock.step_to(START - EVERY * 10);
    scene.sample().await;
}

#[flexiq::task(queue = "watched")]
async fn watched() {}

#[tokio::test]
async fn of_a_fleet_one_worker_samples_every_five_minutes() {
    let (queue, clock) = queue().await;
    let mut fleet = Vec::new();
    for _ in 0..3 {
        fleet.push(queue.worker().tasks([task_watched()]).start().await.expect("it starts"));
    }
    let moments = async |times: usize| {
        let look = async {
            loop {
                let samples = queue.below().stats().await.expect("answered").samples;
                if samples.len() >= times {
                    return samples.iter().map(|StoredSample { at, .. }| at.since(START)).collect::<Vec<_>>();
                }
                tokio::task::yield_now().await;
            }
        };
        soon("a sample is kept", look).await
    };
    clock.advance(EVERY);
    assert_eq!(moments(1).await, [EVERY]);
    clock.advance(EVERY);
    assert_eq!(moments(2).await, [EVERY, EVERY * 2]);
    for worker in fleet {
        soon("it stops", worker.shutdown()).await.expect("it stops");
    }
}
