//! explain: each thing by which a gate is shut is named, alone and beside others, and nothing else is.

use std::sync::Arc;

use flexiq::internals::{
    Cause, Change, Claimed, Finish, Held, Hold, Holder, Limits, NewJob, Origin, Scope, Turn, WorkerId,
};

use crate::harness::*;

/// What shuts a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bar {
    Paused,
    Held,
    Full,
    Spent,
}

/// Whose gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Queue,
    Task,
    Partition,
}

/// Every way to shut a gate, in the order in which they are told.
fn all_ways() -> Vec<(Bar, Whose)> {
    let bars = [Bar::Paused, Bar::Held, Bar::Full, Bar::Spent];
    let whose = [Whose::Queue, Whose::Task, Whose::Partition];
    bars.into_iter().flat_map(|bar| whose.map(|whose| (bar, whose))).collect()
}

/// Each alone, each beside another, all together, none.
fn cases() -> Vec<Vec<(Bar, Whose)>> {
    let all = all_ways();
    let mut cases: Vec<Vec<_>> = all.iter().map(|way| vec![*way]).collect();
    cases.extend((0..all.len()).map(|n| {
        let mut pair = vec![all[n], all[(n + 5) % all.len()]];
        pair.sort();
        pair
    }));
    cases.push(all);
    cases.push(vec![]);
    cases
}

/// A queue of its own for one case, with one task, one partition, and one worker.
struct Scene<'a> {
    bench: &'a Bench,
    queue: String,
    task: String,
    worker: WorkerId,
}

impl<'a> Scene<'a> {
    async fn new(bench: &'a Bench, number: usize) -> Self {
        let (queue, task) = (format!("q{number}"), format!("task{number}"));
        let worker = bench.taking(&queue, &task, Limits::default()).await;
        Self { bench, queue, task, worker }
    }

    fn scope(&self, whose: Whose) -> Scope {
        match whose {
            Whose::Queue => Scope::Queue(name(&self.queue)),
            Whose::Task => Scope::Task(name(&self.task)),
            Whose::Partition => Scope::Partition(name(&self.task), "a".into()),
        }
    }

    async fn set(&self, whose: Whose, change: Change) {
        self.bench.store.limit(self.scope(whose), change).await.expect("the limit is set");
    }

    async fn turn(&self, finishes: Vec<Finish>, most: Option<u32>) -> Vec<Claimed> {
        let claim = most.map(|most| claim(&[&self.task], most));
        let (worker, queue) = (self.worker, name(&self.queue));
        let turn = Turn { worker, queue, number: next_number(), finishes, claim };
        self.bench.store.turn(Arc::new(turn)).await.expect("the turn is answered").claimed
    }

    /// Shuts the gates in these ways: four jobs start, of which one is left running where a cap shall be full.
    async fn shut(&self, ways: &[(Bar, Whose)]) -> Holder {
        let with = |bar| ways.iter().filter(move |(of, _)| *of == bar).map(|(_, whose)| *whose);
        for whose in with(Bar::Spent) {
            self.set(whose, Change::Rates(Some(rates("4/h")))).await;
        }
        self.bench.enqueue_many(&self.queue, jobs_of(&self.task, "a", 4)).await;
        let mut started = self.turn(vec![], Some(10)).await;
        let holder = started.remove(0);
        let mut finishes = finish_all(&started);
        for (finish, whose) in finishes.iter_mut().zip(with(Bar::Held)) {
            let what = match whose {
                Whose::Queue => Held::Queue,
                Whose::Task => Held::Task,
                Whose::Partition => Held::Partition,
            };
            finish.hold = Some(Hold { what, length: secs(30) });
        }
        self.turn(finishes, None).await;
        if with(Bar::Full).next().is_none() {
            self.turn(finish_all(std::slice::from_ref(&holder)), None).await;
        }
        for whose in with(Bar::Full) {
            self.set(whose, Change::MaxConcurrent(Some(1))).await;
        }
        for whose in with(Bar::Paused) {
            self.set(whose, Change::Paused(true)).await;
        }
        Holder { job: holder.lease.job, worker: self.worker, started_at: START.into() }
    }

    fn cause(&self, (bar, whose): (Bar, Whose), holder: Holder) -> Cause {
        let (scope, origin) = (self.scope(whose), Origin::Set);
        match bar {
            Bar::Paused => Cause::Paused { scope },
            Bar::Held => Cause::Held { scope, until: (START + secs(30)).into() },
            Bar::Full => Cause::Full { scope, max_concurrent: 1, origin, running: 1, holders: vec![holder] },
            Bar::Spent => {
                let opens_at = (START + secs(3_600)).into();
                Cause::Spent { scope, rates: rates("4/h"), origin, opens_at }
            }
        }
    }
}

for_every_store! {
    async fn each_thing_that_shuts_a_gate_is_named_and_nothing_else(bench: Bench) {
        for (number, ways) in cases().into_iter().enumerate() {
            let scene = Scene::new(&bench, number).await;
            let holder = scene.shut(&ways).await;
            let id = bench.enqueue_many(&scene.queue, vec![job_of(&scene.task, "a")]).await[0].id;
            let expected: Vec<Cause> = ways.iter().map(|way| scene.cause(*way, holder)).collect();
            let explanation = bench.explain(id).await;
            assert_eq!(explanation.causes, expected, "{ways:?}");
            assert_eq!((explanation.job, explanation.at), (bench.job(id).await, START.into()));
            let started = scene.turn(vec![], Some(10)).await.len();
            assert_eq!(started, usize::from(ways.is_empty()), "what is told is what holds: {ways:?}");
        }
    }

    async fn a_limit_says_whether_it_was_declared_or_set(bench: Bench) {
        let limits = Limits { rates: rates("1/h"), ..cap(1) };
        bench.partitioning("send", limits.clone(), limits).await;
        bench.enqueue_many("q", jobs_of("send", "a", 1)).await;
        bench.claim(bench.living, &["send"], 5).await;
        let id = bench.enqueue(job_of("send", "a")).await;
        let origins = async || {
            let of = |cause: &Cause| match cause {
                Cause::Full { origin, .. } | Cause::Spent { origin, .. } => *origin,
                other => panic!("nothing else keeps it waiting: {other:?}"),
            };
            bench.explain(id).await.causes.iter().map(of).collect::<Vec<_>>()
        };
        use Origin::{Declared, Set};
        assert_eq!(origins().await, [Declared, Declared, Declared, Declared]);
        bench.set_task("send", Change::MaxConcurrent(Some(1))).await;
        bench.set_partition("send", "a", Change::Rates(Some(rates("1/h")))).await;
        assert_eq!(origins().await, [Set, Declared, Declared, Set]);
    }

    async fn a_full_cap_names_the_ten_that_started_first_and_counts_all(bench: Bench) {
        let worker = bench.declaring(&[("send", cap(12)), ("other", Limits::default())]).await;
        bench.enqueue_many("q", [jobs("other", 3), jobs("send", 12)].concat()).await;
        bench.claim(worker, &["other"], 3).await;
        let mut started = Vec::new();
        for _ in 0..3 {
            started.extend(bench.claim(worker, &["send"], 4).await);
            bench.hands.advance(millis(1));
        }
        let id = bench.enqueue(job("send")).await;
        let [Cause::Full { running, holders, .. }] = &bench.explain(id).await.causes[..] else {
            panic!("the cap alone keeps it waiting")
        };
        let mut expected: Vec<_> = started.iter().map(|it| (it.claimed_at, it.lease.job)).collect();
        expected.sort();
        let named: Vec<_> = holders.iter().map(|holder| (holder.started_at.into(), holder.job)).collect();
        assert_eq!((*running, named), (12, expected[..10].to_vec()));
        assert!(holders.iter().all(|holder| holder.worker == worker));
    }

    async fn a_gate_of_another_partition_keeps_nothing_waiting(bench: Bench) {
        bench.partitioning("send", Limits::default(), cap(1)).await;
        bench.enqueue_many("q", jobs_of("send", "a", 1)).await;
        bench.claim(bench.living, &["send"], 5).await;
        bench.set_partition("send", "b", Change::Paused(true)).await;
        let free = bench.enqueue(NewJob { priority: 5, ..job_of("send", "c") }).await;
        let plain = bench.enqueue(job("send")).await;
        assert_eq!(bench.explain(free).await.causes, []);
        assert_eq!(bench.explain(plain).await.causes, []);
    }
}
