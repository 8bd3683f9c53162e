//! A store under test, its clock's hands, and short words for what the tests say.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use flexiq::internals::sqlite::{Location, SqliteOptions, SqliteStore};
use flexiq::internals::*;
use flexiq::internals::{Clock, ManualClock, Timestamp};
use flexiq::internals::{Due, Rate, Transition, Value};
use flexiq::{Job, JobId, State};
use flexiq_tests::ModelStore;

/// Where every manual clock starts.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// The lease that workers of these tests ask for, and how often they beat.
pub(crate) const LEASE: Duration = secs(10);
pub(crate) const BEAT: Duration = secs(3);
/// How long successes of these tests are kept.
pub(crate) const KEEP: Duration = secs(300);

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn name(text: &str) -> Name {
    Name::new("test", text).expect("tests use valid names")
}

/// Runs each test once for every store, and for the model: so the suite and the model are held to each other.
macro_rules! for_every_store {
    ($($(#[$attribute:meta])* async fn $test:ident($bench:ident: Bench) $body:block)*) => {
        $(
            mod $test {
                use super::*;

                async fn check($bench: Bench) $body

                on_store! { $(#[$attribute])* model }
                on_store! { $(#[$attribute])* sqlite_memory }
                on_store! { $(#[$attribute])* sqlite_file }
                #[cfg(feature = "redis")]
                on_store! { $(#[$attribute])* redis }
            }
        )*
    };
}
pub(crate) use for_every_store;

/// Runs each test once for every store that wakes no more workers than there is work: all but the model.
macro_rules! for_every_store_with_bells {
    ($($(#[$attribute:meta])* async fn $test:ident($bench:ident: Bench) $body:block)*) => {
        $(
            mod $test {
                use super::*;

                async fn check($bench: Bench) $body

                on_store! { $(#[$attribute])* sqlite_memory }
                on_store! { $(#[$attribute])* sqlite_file }
                #[cfg(feature = "redis")]
                on_store! { $(#[$attribute])* redis }
            }
        )*
    };
}
pub(crate) use for_every_store_with_bells;

/// Runs the check of this module on one store.
macro_rules! on_store {
    ($(#[$attribute:meta])* $store:ident) => {
        $(#[$attribute])*
        #[tokio::test]
        async fn $store() {
            Bench::$store().await.check(check).await;
        }
    };
}
pub(crate) use on_store;

/// A store with a manual clock, and a worker that lives.
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hands: ManualClock,
    /// A worker that beats whenever [`pass`](Bench::pass) lets time pass, and holds no lease.
    pub(crate) living: WorkerId,
    /// How long a message of the store may be on its way: real time.
    travel: Duration,
    /// Where its file lies.
    folder: Option<Folder>,
}

/// A folder that is deleted at the end of its test.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("flexiq-test-{}", JobId::new()));
        std::fs::create_dir(&path).expect("the temporary folder can be written");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Bench {
    pub(crate) async fn sqlite_memory() -> Self {
        Self::sqlite(Location::Memory, None).await
    }

    pub(crate) async fn sqlite_file() -> Self {
        let folder = Folder::new();
        Self::sqlite(Location::File(folder.file("jobs.db")), Some(folder)).await
    }

    async fn sqlite(location: Location, folder: Option<Folder>) -> Self {
        let (clock, hands) = Clock::manual(START);
        let mut options = SqliteOptions::new(location);
        options.clock = clock;
        let store = SqliteStore::open(options).await.expect("the store opens");
        Self::of(store, hands, millis(0), folder).await
    }

    /// The model, which histories compare the others with: it is held to the same rules.
    pub(crate) async fn model() -> Self {
        let (clock, hands) = Clock::manual(START);
        Self::of(ModelStore::new(clock), hands, millis(0), None).await
    }

    /// A store of its own on the suite's server, apart from all others by its prefix.
    #[cfg(feature = "redis")]
    pub(crate) async fn redis() -> Self {
        let (clock, hands) = Clock::manual(START);
        let url = flexiq_tests::redis_server::url();
        let mut options =
            redis::RedisOptions::from_url(&url).expect("FLEXIQ_TEST_REDIS_URL is a URL of Redis");
        options.clock = clock;
        let store = redis::RedisStore::open(options).await.expect("the store opens");
        Self::of(store, hands, millis(4), None).await
    }

    /// A store that has the system's clock: its hands are not moved.
    #[cfg(feature = "redis")]
    pub(crate) async fn on(store: Arc<dyn Store>) -> Self {
        let (_, hands) = Clock::manual(START);
        Self::of(store, hands, millis(4), None).await
    }

    /// A store whose clock these hands move.
    pub(crate) async fn of(
        store: Arc<dyn Store>,
        hands: ManualClock,
        travel: Duration,
        folder: Option<Folder>,
    ) -> Self {
        let living = WorkerId::new();
        let bench = Self { store, hands, living, travel, folder };
        bench.register(living).await;
        bench
    }

    /// Carries out a test. Whatever it did, its store is sound at the end.
    pub(crate) async fn check<Checked: Future<Output = ()>>(mut self, check: impl FnOnce(Self) -> Checked) {
        let (store, _folder) = (self.store.clone(), self.folder.take());
        check(self).await;
        assert_eq!(store.check(Repair::Nothing).await.expect("the store is checked"), []);
    }

    pub(crate) async fn register(&self, worker: WorkerId) {
        let hello = Hello { worker, label: "host:1".into(), lease: LEASE, queues: vec![], tasks: vec![] };
        self.store.register(hello).await.expect("a worker registers");
    }

    /// A new worker that lives.
    pub(crate) async fn worker(&self) -> WorkerId {
        let worker = WorkerId::new();
        self.register(worker).await;
        worker
    }

    /// A new worker that lives and declares these limits for its tasks, whose home is the queue "q".
    pub(crate) async fn declaring(&self, tasks: &[(&str, Limits)]) -> WorkerId {
        let worker = WorkerId::new();
        self.declare(worker, tasks, Limits::default()).await;
        worker
    }

    /// Registers a worker that declares these limits for its tasks, and these for the queue "q".
    pub(crate) async fn declare(&self, worker: WorkerId, tasks: &[(&str, Limits)], queue: Limits) {
        let declared = |(task, limits): &(&str, Limits)| Declared {
            task: name(task),
            queue: name("q"),
            json: "{}".into(),
            limits: limits.clone(),
            per_partition: Limits::default(),
            schedule: None,
        };
        let hello = Hello {
            worker,
            label: "host:1".into(),
            lease: LEASE,
            queues: vec![(name("q"), queue)],
            tasks: tasks.iter().map(declared).collect(),
        };
        self.store.register(hello).await.expect("a worker registers");
    }

    /// A new worker that lives and declares these limits for a task and for each of its partitions.
    pub(crate) async fn partitioning(&self, task: &str, limits: Limits, per_partition: Limits) -> WorkerId {
        let worker = WorkerId::new();
        let (json, schedule) = ("{}".into(), None);
        let declared = Declared { task: name(task), queue: name("q"), json, limits, per_partition, schedule };
        let hello = Hello {
            worker,
            label: "host:1".into(),
            lease: LEASE,
            queues: vec![(name("q"), Limits::default())],
            tasks: vec![declared],
        };
        self.store.register(hello).await.expect("a worker registers");
        worker
    }

    /// A new worker that lives, serves this queue, and links this one task of it.
    pub(crate) async fn taking(&self, queue: &str, task: &str, limits: Limits) -> WorkerId {
        let worker = WorkerId::new();
        self.store.register(self.hello_of(worker, queue, task, limits)).await.expect("a worker registers");
        worker
    }

    /// What a worker says that serves this queue and links this one task of it.
    pub(crate) fn hello_of(&self, worker: WorkerId, queue: &str, task: &str, limits: Limits) -> Hello {
        let (queue, task, per_partition) = (name(queue), name(task), Limits::default());
        let json = "{}".into();
        let declared = Declared { task, queue: queue.clone(), json, limits, per_partition, schedule: None };
        Hello {
            worker,
            label: "host:1".into(),
            lease: LEASE,
            queues: vec![(queue, Limits::default())],
            tasks: vec![declared],
        }
    }

    /// Changes what is set at runtime for one partition of a task.
    pub(crate) async fn set_partition(&self, task: &str, partition: &str, change: Change) {
        let scope = Scope::Partition(name(task), partition.into());
        self.store.limit(scope, change).await.expect("the limit is set");
    }

    /// Changes what is set at runtime for a task.
    pub(crate) async fn set_task(&self, task: &str, change: Change) {
        self.store.limit(Scope::Task(name(task)), change).await.expect("the limit is set");
    }

    /// Changes what is set at runtime for the queue "q".
    pub(crate) async fn set_queue(&self, change: Change) {
        self.store.limit(Scope::Queue(name("q")), change).await.expect("the limit is set");
    }

    /// Lets time pass as a living fleet would see it: with a beat every three seconds.
    pub(crate) async fn pass(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(BEAT);
            self.hands.advance(step);
            left -= step;
            self.beat(self.living, &[]).await;
        }
    }

    /// Enqueues one job of `task` in the queue "q".
    pub(crate) async fn enqueue(&self, job: NewJob) -> JobId {
        self.enqueue_many("q", vec![job]).await[0].id
    }

    pub(crate) async fn enqueue_many(&self, queue: &str, jobs: Vec<NewJob>) -> Vec<Enqueued> {
        self.store
            .enqueue(Enqueue { queue: name(queue), jobs, max_pending: None, producer: None })
            .await
            .expect("the batch is stored")
    }

    /// Claims up to `most` jobs of these tasks from the queue "q".
    pub(crate) async fn claim(&self, worker: WorkerId, tasks: &[&str], most: u32) -> Vec<Claimed> {
        self.turn(worker, vec![], Some(claim(tasks, most))).await.claimed
    }

    /// A turn of the queue "q" with a number of its own.
    pub(crate) async fn turn(
        &self,
        worker: WorkerId,
        finishes: Vec<Finish>,
        claim: Option<Claim>,
    ) -> TurnAnswer {
        let turn = Turn { worker, queue: name("q"), number: next_number(), finishes, claim };
        self.store.turn(Arc::new(turn)).await.expect("the turn is answered")
    }

    /// Finishes one run.
    pub(crate) async fn finish(&self, worker: WorkerId, lease: LeaseId, transition: Transition) -> Finished {
        self.turn(worker, vec![Finish::new(lease, transition)], None).await.finished[0]
    }

    pub(crate) async fn beat(&self, worker: WorkerId, leases: &[LeaseId]) -> BeatAnswer {
        let leases = leases.iter().map(|&lease| (lease, Lapse::Loss)).collect();
        self.store
            .extend(Beat { worker, lease: LEASE, every: BEAT, leases, permits: Vec::new(), report: None })
            .await
            .expect("the beat is answered")
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.job(id).await.expect("the store answers").expect("the job is there")
    }

    pub(crate) async fn explain(&self, id: JobId) -> Explanation {
        self.store.explain(id).await.expect("the store answers").expect("the job is there")
    }

    pub(crate) async fn state(&self, id: JobId) -> State {
        self.job(id).await.state
    }

    /// Polls a step until the store has nothing more to do about it; true if it still waits.
    pub(crate) async fn is_pending<T>(&self, step: &mut Step<'_, T>) -> bool {
        for _ in 0..3 {
            if poll_once(step).await {
                return false;
            }
            // A question and a change, so that whatever the store had begun before is done.
            self.store.queues().await.expect("the store answers");
            self.store.retire(WorkerId::new()).await.expect("the store answers");
            if !self.travel.is_zero() {
                tokio::time::sleep(self.travel).await;
            }
        }
        !poll_once(step).await
    }

    /// The counts of a task of the queue "q".
    pub(crate) async fn counts(&self, task: &str) -> TaskCounts {
        let counts = self.store.counts().await.expect("the store answers");
        counts.tasks.into_iter().find(|counts| counts.task == task).unwrap_or_default()
    }
}

/// Grows over the whole run of the suite, so that no two turns have one number by accident.
pub(crate) fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// A job of `task` that is due now.
pub(crate) fn job(task: &str) -> NewJob {
    NewJob {
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
    }
}

/// A job of a partition of `task` that is due now.
pub(crate) fn job_of(task: &str, partition: &str) -> NewJob {
    NewJob { partition: partition.into(), ..job(task) }
}

/// `n` jobs of a partition of `task`.
pub(crate) fn jobs_of(task: &str, partition: &str, n: usize) -> Vec<NewJob> {
    (0..n).map(|_| job_of(task, partition)).collect()
}

/// The partitions of what was claimed, in order.
pub(crate) fn partitions(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|claimed| claimed.partition.as_str()).collect()
}

/// A claim of `most` jobs in one kind of slot.
pub(crate) fn claim(tasks: &[&str], most: u32) -> Claim {
    Claim {
        slots: vec![most],
        tasks: tasks
            .iter()
            .map(|task| Room { task: name(task), slot: 0, at_most: u32::MAX, max_losses: 3 })
            .collect(),
        lease: LEASE,
    }
}

/// `n` jobs of `task`.
pub(crate) fn jobs(task: &str, n: usize) -> Vec<NewJob> {
    (0..n).map(|_| job(task)).collect()
}

/// A declared cap.
pub(crate) fn cap(jobs: u32) -> Limits {
    Limits { max_concurrent: Some(jobs), ..Limits::default() }
}

/// A declared rate, or several.
pub(crate) fn rate(text: &str) -> Limits {
    Limits { rates: rates(text), ..Limits::default() }
}

/// Rates as a user writes them.
pub(crate) fn rates(text: &str) -> Vec<Rate> {
    text.split(',').map(|rate| rate.parse().expect("tests use valid rates")).collect()
}

pub(crate) fn finish_all(claimed: &[Claimed]) -> Vec<Finish> {
    claimed.iter().map(|claimed| Finish::new(claimed.lease, succeed())).collect()
}

pub(crate) fn succeed() -> Transition {
    Transition::Succeed { value: Value::Unit, keep: KEEP }
}

pub(crate) fn ids(claimed: &[Claimed]) -> Vec<JobId> {
    claimed.iter().map(|claimed| claimed.lease.job).collect()
}

/// Polls a step once; true if it is answered.
async fn poll_once<T>(step: &mut Step<'_, T>) -> bool {
    std::future::poll_fn(|context| Poll::Ready(step.as_mut().poll(context).is_ready())).await
}

/// The answer of a step that is about to come: within 5 s of real time, or the test has failed.
pub(crate) async fn soon<T>(step: Step<'_, T>) -> flexiq::Result<T> {
    tokio::time::timeout(secs(5), step).await.expect("the step is answered")
}

/// What a worker waits for: tasks by queue.
pub(crate) fn interest(worker: WorkerId, queues: &[(&str, &[&str])]) -> Wait {
    let queues = queues
        .iter()
        .map(|(queue, tasks)| (name(queue), tasks.iter().map(|task| name(task)).collect::<Arc<[_]>>()))
        .collect();
    Wait { worker, queues }
}

/// A worker of its own that waits for these tasks of the queue "q", and is surely asleep.
pub(crate) async fn asleep<'a>(bench: &'a Bench, tasks: &[&str]) -> (WorkerId, Step<'a, Wake>) {
    let worker = bench.worker().await;
    let mut wait = bench.store.wait(interest(worker, &[("q", tasks)]));
    assert!(bench.is_pending(&mut wait).await, "nothing to start yet");
    (worker, wait)
}

/// The queues for which a sleeper was woken.
pub(crate) async fn woken(wait: Step<'_, Wake>) -> Vec<String> {
    let wake = soon(wait).await.expect("the wait is answered");
    wake.queues.iter().map(ToString::to_string).collect()
}
