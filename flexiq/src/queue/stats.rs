//! stats: the whole store as it is seen from outside. The store tells the facts (`store/stats.rs`), here the conclusions
//! are drawn: what is startable behind all gates, what is stranded, what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::{Answer, Queue};
use crate::clock::Timestamp;
use crate::name::Name;
use crate::store::{
    Cause, Ended, Limits, MOST_LEASES_SEEN, QueueFacts, Report, Runs, Scope, Snapshot, Standing, TaskCounts,
    TaskFacts, WorkerFacts, WorkerId,
};

/// A whole store, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The store's moment.
    pub at: SystemTime,
    /// The queues that are known, sorted.
    pub queues: Vec<QueueStats>,
    /// The tasks that have jobs, or that a live worker links, by queue and task, sorted.
    pub tasks: Vec<TaskStats>,
    /// The workers that are alive, the oldest first.
    pub workers: Vec<WorkerStats>,
    /// How many queues and tasks go by limits that are not those which the youngest live worker declares, or by a copy of
    /// their limits that is not what holds. Anything but 0 should last no longer than a beat.
    pub drift: u64,
}

/// A queue, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// The queue.
    pub queue: String,
    /// Jobs that are scheduled or ready.
    pub pending: u64,
    /// How many may be pending, where that is limited.
    pub max_pending: Option<u64>,
    /// Jobs that hold a lease.
    pub running: u64,
    /// Ready jobs that no shut gate keeps waiting: what more workers could start now. Of a task that is capped, as many as
    /// its cap lets through; of one partition, at most 1,000.
    pub startable: u64,
    /// Whether it is paused.
    pub is_paused: bool,
    /// Each thing by which its own gate is shut.
    pub shut_by: Vec<Cause>,
}

/// A task in a queue, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskStats {
    /// The queue.
    pub queue: String,
    /// The task.
    pub task: String,
    /// How many of its jobs are in which state.
    pub counts: TaskCounts,
    /// Ready jobs that no shut gate keeps waiting, also not that of the queue, which other tasks may use up first.
    pub startable: u64,
    /// Since when its oldest ready job is ready. Of a task with more than 1,000 partitions that wait, it is the oldest of
    /// so many.
    pub oldest_ready_at: Option<SystemTime>,
    /// When the oldest of its runs began.
    pub oldest_run_at: Option<SystemTime>,
    /// Whether jobs of it are pending and no live worker both links the task and serves the queue.
    pub is_stranded: bool,
    /// Each thing by which its own gate is shut; of a task that has no job at all, a pause alone. What keeps single partitions
    /// is not told: [`Queue::explain`] tells it of a job.
    pub shut_by: Vec<Cause>,
}

/// A worker that is alive, as it last said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Its id.
    pub worker: WorkerId,
    /// Its host and process, for people.
    pub label: String,
    /// Since when it is known.
    pub since: SystemTime,
    /// When it was last heard of. What follows is as old.
    pub beat_at: SystemTime,
    /// The queues that it serves, sorted.
    pub queues: Vec<String>,
    /// The tasks that it links, sorted.
    pub tasks: Vec<String>,
    /// Its slots for `async` functions. None of either kind until its first beat.
    pub async_slots: SlotStats,
    /// Its slots for plain functions.
    pub plain_slots: SlotStats,
    /// What it runs and has run since its start, by queue and task: at most 200 of them, those that it started last.
    pub runs: Vec<RunStats>,
    /// How many more it has run jobs of.
    pub left_out: u64,
}

/// The slots of one kind of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotStats {
    /// All of them.
    pub total: u32,
    /// Those in which a job runs.
    pub busy: u32,
}

/// What a worker runs and has run of one task from one queue, since its start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStats {
    /// The queue.
    pub queue: String,
    /// The task.
    pub task: String,
    /// Whether its function is a plain one, else an `async` one: which kind of slots it takes.
    pub is_plain: bool,
    /// Runs at the moment of its last beat.
    pub running: u64,
    /// When the oldest of them began.
    pub oldest_run_at: Option<SystemTime>,
    /// Runs that have ended, by outcome.
    pub ended: Ended,
    /// Jobs that it started.
    pub started: u64,
    /// The sum of their times from ready to start.
    pub waited: Duration,
    /// The sum of the times of the runs that have ended.
    pub ran: Duration,
}

impl Queue {
    /// Shows the whole store at one moment: what waits and runs of each task, since when, and behind which gates; what could
    /// start if there were workers; who is alive, and what each does.
    ///
    /// Its cost does not grow with the number of jobs: it looks at counters, at the heads of what waits, at 1,000 leases of
    /// each queue, and at what workers say with each beat. What time alone does is told as it was when a claim or a beat last
    /// did it. On Redis each queue is seen at a moment of its own.
    ///
    /// # Errors
    ///
    /// What the store says if it cannot be asked.
    ///
    /// ```
    /// use flexiq::Queue;
    ///
    /// #[flexiq::task(queue = "videos", max_concurrent = 2)]
    /// async fn encode(file: String) {
    ///     println!("{file}");
    /// }
    ///
    /// #[tokio::main]
    /// async fn main() -> flexiq::Result<()> {
    ///     let queue = Queue::open("sqlite::memory:").await?;
    ///     enqueue_encode(&queue, "cats.mkv".into()).await?;
    ///
    ///     let stats = queue.stats().await?;
    ///     let [videos] = &stats.tasks[..] else { panic!("one task has jobs") };
    ///     assert_eq!((videos.counts.ready, videos.startable), (1, 1));
    ///     assert!(videos.is_stranded, "no worker is alive");
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias = "metrics")]
    pub fn stats(&self) -> Answer<Stats> {
        let store = self.store().clone();
        Answer::new(async move { Ok(Stats::of(&store.stats().await?)) })
    }
}

impl Stats {
    /// Draws the conclusions from the facts.
    pub(super) fn of(found: &Snapshot) -> Self {
        let held: Held<'_> = found.standings.iter().map(|standing| (&standing.scope, standing)).collect();
        let workers: Vec<WorkerStats> = found.workers.iter().map(WorkerStats::of).collect();
        let queues: Vec<QueueStats> = found.queues.iter().map(|queue| QueueStats::of(queue, &held)).collect();
        let mut tasks: Vec<TaskStats> = found.tasks.iter().map(TaskStats::of).collect();
        tasks.extend(idle(found, &workers, &held));
        tasks.sort_by(|one, other| (&one.queue, &one.task).cmp(&(&other.queue, &other.task)));
        for task in &mut tasks {
            task.look_behind(&queues, &workers);
        }
        Self { at: found.at.into(), queues, tasks, workers, drift: drift(found, &held) }
    }

    /// A task in a queue, if there is one.
    pub fn task(&self, queue: &str, task: &str) -> Option<&TaskStats> {
        self.tasks.iter().find(|of| of.queue == queue && of.task == task)
    }

    /// A queue, if it is known.
    pub fn queue(&self, queue: &str) -> Option<&QueueStats> {
        self.queues.iter().find(|of| of.queue == queue)
    }
}

/// What holds, by what it holds for.
type Held<'a> = BTreeMap<&'a Scope, &'a Standing>;

/// The tasks that live workers link and that have no job in their home queues.
fn idle(found: &Snapshot, workers: &[WorkerStats], held: &Held<'_>) -> Vec<TaskStats> {
    let linked: BTreeSet<&str> =
        workers.iter().flat_map(|worker| &worker.tasks).map(String::as_str).collect();
    let busy: BTreeSet<(&str, &str)> =
        found.tasks.iter().map(|of| (&*of.counts.queue, &*of.counts.task)).collect();
    let is_idle = |task: &str, queue: &str| linked.contains(task) && !busy.contains(&(queue, task));
    let idle = found.homes.iter().filter(|(task, queue)| is_idle(task, queue));
    idle.map(|(task, queue)| TaskStats::idle(queue, task, held)).collect()
}

impl QueueStats {
    fn of(facts: &QueueFacts, held: &Held<'_>) -> Self {
        let QueueFacts { queue, pending, running, startable, shut_by } = facts.clone();
        let standing = held.get(&Scope::Queue(queue.clone()));
        Self {
            queue: queue.to_string(),
            pending,
            max_pending: standing.and_then(|standing| standing.limits().max_pending),
            running,
            startable,
            is_paused: standing.is_some_and(|standing| standing.is_paused),
            shut_by,
        }
    }
}

impl TaskStats {
    fn of(facts: &TaskFacts) -> Self {
        let TaskFacts { counts, startable, oldest_ready_at, oldest_run_at, shut_by, .. } = facts.clone();
        Self {
            queue: counts.queue.clone(),
            task: counts.task.clone(),
            counts,
            startable,
            oldest_ready_at: oldest_ready_at.map(Into::into),
            oldest_run_at: oldest_run_at.map(Into::into),
            is_stranded: false,
            shut_by,
        }
    }

    /// One without any job, whose gate nothing but a pause is told of.
    fn idle(queue: &Name, task: &Name, held: &Held<'_>) -> Self {
        let scope = Scope::Task(task.clone());
        let is_paused = held.get(&scope).is_some_and(|standing| standing.is_paused);
        let shut_by = if is_paused { vec![Cause::Paused { scope }] } else { Vec::new() };
        let (queue, task) = (queue.to_string(), task.to_string());
        Self { shut_by, ..Self::of_none(TaskCounts { queue, task, ..TaskCounts::default() }) }
    }

    /// One of which nothing waits and nothing runs.
    pub(super) fn of_none(counts: TaskCounts) -> Self {
        Self {
            queue: counts.queue.clone(),
            task: counts.task.clone(),
            counts,
            startable: 0,
            oldest_ready_at: None,
            oldest_run_at: None,
            is_stranded: false,
            shut_by: Vec::new(),
        }
    }

    /// What its queue and the workers mean for it.
    fn look_behind(&mut self, queues: &[QueueStats], workers: &[WorkerStats]) {
        let is_taken = || workers.iter().any(|worker| worker.takes(&self.queue, &self.task));
        self.is_stranded = self.counts.pending() > 0 && !is_taken();
        let Some(queue) = queues.iter().find(|queue| queue.queue == self.queue) else { return };
        self.startable = self.startable.min(queue.startable);
        // Behind the leases that the store has looked at, the workers know more.
        if queue.running > MOST_LEASES_SEEN as u64 {
            let told = workers.iter().flat_map(|worker| &worker.runs);
            let ours = told.filter(|runs| runs.queue == self.queue && runs.task == self.task);
            let oldest = ours.filter_map(|runs| runs.oldest_run_at).chain(self.oldest_run_at).min();
            self.oldest_run_at = oldest;
        }
    }
}

impl WorkerStats {
    /// Whether it links this task and serves this queue.
    pub(super) fn takes(&self, queue: &str, task: &str) -> bool {
        self.serves(queue) && self.links(task)
    }

    pub(super) fn serves(&self, queue: &str) -> bool {
        has(&self.queues, queue)
    }

    pub(super) fn links(&self, task: &str) -> bool {
        has(&self.tasks, task)
    }

    fn of(facts: &WorkerFacts) -> Self {
        let Report { async_slots, plain_slots, runs, left_out } =
            facts.report.as_deref().map(Report::read).unwrap_or_default();
        let slots = |(total, busy)| SlotStats { total, busy };
        let (mut queues, mut tasks) = (Vec::new(), Vec::new());
        for (scope, _) in &facts.declared {
            match scope {
                Scope::Queue(queue) => queues.push(queue.to_string()),
                Scope::Task(task) => tasks.push(task.to_string()),
                Scope::EachPartition(_) | Scope::Partition(..) => {}
            }
        }
        Self {
            worker: facts.worker,
            label: facts.label.clone(),
            since: facts.since.into(),
            beat_at: facts.beat_at.into(),
            queues,
            tasks,
            async_slots: slots(async_slots),
            plain_slots: slots(plain_slots),
            runs: runs.into_iter().map(RunStats::of).collect(),
            left_out,
        }
    }
}

impl RunStats {
    fn of(runs: Runs) -> Self {
        let Runs { queue, task, is_plain, running, oldest_run_at, ended, started, waited_ms, ran_ms } = runs;
        Self {
            queue,
            task,
            is_plain,
            running,
            oldest_run_at: oldest_run_at.map(|ms| Timestamp::from_millis(ms).into()),
            ended,
            started,
            waited: Duration::from_millis(waited_ms),
            ran: Duration::from_millis(ran_ms),
        }
    }
}

/// Whether a name is among these, which are sorted.
fn has(names: &[String], name: &str) -> bool {
    names.binary_search_by(|of| of.as_str().cmp(name)).is_ok()
}

/// How many declarations of the youngest live workers are not what the store holds for them, and how many copies are not
/// what holds.
fn drift(found: &Snapshot, held: &Held<'_>) -> u64 {
    let mut youngest: BTreeMap<&Scope, &Limits> = BTreeMap::new();
    for worker in &found.workers {
        youngest.extend(worker.declared.iter().map(|(scope, limits)| (scope, limits)));
    }
    let none = Limits::default();
    let differs = |(scope, limits): &(&Scope, &Limits)| {
        held.get(scope).map_or(&none, |standing| &standing.declared) != *limits
    };
    youngest.into_iter().filter(differs).count() as u64 + found.stale
}
