//! explain_task: the gates of a task as a whole, with who declares them and who holds them. It is drawn from the same look as
//! `stats`; `task_words.rs` says it in sentences.

use std::time::SystemTime;

use super::stats::{Stats, TaskStats, WorkerStats};
use super::{Answer, Queue};
use crate::error::{Error, Result};
use crate::policy::{self, Rate};
use crate::store::{
    Cause, LiveWorker, MOST_NAMED, Origin, Scope, Snapshot, Standing, Store, TaskCounts, WorkerFacts,
    WorkerId,
};
use crate::task::{Declaration, Registry};

/// The gates of a task, as the store saw them at one moment.
///
/// Its [`Display`](std::fmt::Display) says it in sentences, one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskExplanation {
    /// The task.
    pub task: String,
    /// The store's moment.
    pub at: SystemTime,
    /// Its home queue, where its gates are decided; `None` if no worker has declared it yet.
    pub home: Option<String>,
    /// The knobs that are turned: its own, those of each of its partitions, and those of its home queue.
    pub knobs: Vec<KnobSetting>,
    /// How many of its partitions have limits of their own, or are paused.
    pub partitions_apart: u64,
    /// How it stands in its home queue, and in each other queue that holds jobs of it.
    pub queues: Vec<TaskInQueue>,
}

/// A knob that is turned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnobSetting {
    /// Whose knob it is.
    pub scope: Scope,
    /// The value that holds.
    pub value: KnobValue,
    /// Where that comes from: of a task, [`Declared`](Origin::Declared) is its attribute; of a queue, a builder.
    pub origin: Origin,
    /// What is declared, where something else was set at runtime above it.
    pub above: Option<KnobValue>,
    /// Whose declaration that is, the youngest live worker's. `None` if nothing is declared, or nobody who declares it is
    /// alive: then the last word stands.
    pub declared_by: Option<Declarer>,
}

/// The value of a knob.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KnobValue {
    /// Nothing starts.
    Paused,
    /// Jobs that hold a lease at once, on the whole fleet.
    MaxConcurrent(u32),
    /// Starts per period, all of which hold. None at all may be set above those that are declared.
    Rates(Vec<Rate>),
    /// Jobs that are pending at once.
    MaxPending(u64),
    /// Jobs of the task in one worker at once.
    MaxInFlight(u32),
}

/// A live worker whose declaration holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Declarer {
    /// Its id.
    pub worker: WorkerId,
    /// Its host and process, for people.
    pub label: String,
}

/// How a task stands in one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskInQueue {
    /// What waits and runs, and since when.
    pub stats: TaskStats,
    /// All that keeps its jobs from starting: each thing by which the gate of the queue or of the task is shut, and that no live
    /// worker takes them. What keeps single partitions is not told.
    pub causes: Vec<Cause>,
    /// The live workers that link the task and serve the queue, the youngest first: at most 10 of them.
    pub taken_by: Vec<LiveWorker>,
    /// How many there are.
    pub takers: u64,
}

impl Queue {
    /// Says how a task stands: which knobs it has, with which values, set where and declared by whom; which of its gates are shut,
    /// and who holds them; who serves it; how much waits and runs, and since when.
    ///
    /// It is a look at one moment, at the cost of [`stats`](Self::stats). The answer is data, and its
    /// [`Display`](std::fmt::Display) says it in sentences. Why one job waits, [`explain`](Self::explain) says.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a task that is neither linked nor known to the store, naming the nearest.
    ///
    /// ```
    /// use flexiq::{KnobValue, Queue};
    ///
    /// #[flexiq::task(queue = "videos", max_concurrent = 2)]
    /// async fn compress(file: String) {
    ///     println!("{file}");
    /// }
    ///
    /// #[tokio::main]
    /// async fn main() -> flexiq::Result<()> {
    ///     let queue = Queue::open("sqlite::memory:").await?;
    ///     let worker = queue.worker().start().await?;
    ///     queue.set_task_concurrency("compress", 4).await?;
    ///
    ///     let how = queue.explain_task("compress").await?;
    ///     assert_eq!(how.knobs[0].value, KnobValue::MaxConcurrent(4));
    ///     assert_eq!(how.knobs[0].above, Some(KnobValue::MaxConcurrent(2)));
    ///     println!("{how}"); // Task compress is at home in queue videos. …
    ///     worker.shutdown().await
    /// }
    /// ```
    #[doc(alias = "why")]
    pub fn explain_task(&self, task: impl AsRef<str>) -> Answer<TaskExplanation> {
        let (store, task) = (self.store().clone(), task.as_ref().to_owned());
        Answer::new(async move { explain(&*store, &task).await })
    }
}

async fn explain(store: &dyn Store, task: &str) -> Result<TaskExplanation> {
    let declarations = store.declarations().await?;
    let declared = declarations.iter().find(|(name, _)| name.as_str() == task);
    let declared: Option<Declaration> = match declared {
        Some((_, json)) => Some(serde_json::from_str(json).map_err(|error| Error::Decode {
            what: format!("the declaration of task {task}"),
            reason: error.to_string(),
        })?),
        None => None,
    };
    let found = store.stats().await?;
    let has_jobs = found.tasks.iter().any(|of| of.counts.task == task);
    if declared.is_none() && !has_jobs && Registry::find(task)?.is_none() {
        let mut names: Vec<&str> = Registry::names().collect();
        names.extend(declarations.iter().map(|(name, _)| name.as_str()));
        names.extend(found.tasks.iter().map(|of| of.counts.task.as_str()));
        let nearest = policy::nearest(task, names).map(str::to_owned);
        return Err(Error::Unknown { what: "task", name: task.into(), nearest });
    }
    Ok(Look { task, found: &found, declared }.explain())
}

/// What is looked at.
struct Look<'a> {
    task: &'a str,
    found: &'a Snapshot,
    declared: Option<Declaration>,
}

impl Look<'_> {
    fn explain(&self) -> TaskExplanation {
        let stats = Stats::of(self.found);
        let home = self.declared.as_ref().map(|declared| declared.queue.clone());
        let mut queues: Vec<TaskStats> =
            stats.tasks.iter().filter(|of| of.task == self.task).cloned().collect();
        if let Some(home) = home.as_deref().filter(|home| queues.iter().all(|of| of.queue != **home)) {
            queues.push(nothing_in(home, self.task));
        }
        queues.sort_by_key(|of| (Some(&of.queue) != home.as_ref(), of.queue.clone()));
        let is_apart = |standing: &&Standing| matches!(&standing.scope, Scope::Partition(task, _) if task.as_str() == self.task);
        TaskExplanation {
            task: self.task.to_owned(),
            at: stats.at,
            knobs: self.knobs(home.as_deref()),
            partitions_apart: self.found.standings.iter().filter(is_apart).count() as u64,
            home,
            queues: queues.into_iter().map(|of| self.in_queue(of, &stats)).collect(),
        }
    }

    /// The knobs that are turned, the task's own first.
    fn knobs(&self, home: Option<&str>) -> Vec<KnobSetting> {
        let mut knobs = Vec::new();
        knobs.extend(self.in_flight());
        let mut standings: Vec<&Standing> = self.found.standings.iter().collect();
        // Its own, then those of each of its partitions, then its queue's.
        standings.retain(|standing| place(&standing.scope, self.task, home).is_some());
        standings.sort_by_key(|standing| place(&standing.scope, self.task, home));
        for standing in standings {
            knobs.extend(self.settings(standing));
        }
        knobs
    }

    /// What the task may occupy of one worker: each goes by its own attribute, the newest is told.
    fn in_flight(&self) -> Option<KnobSetting> {
        let most = self.declared.as_ref()?.max_in_flight_per_task?;
        let (task, _) = self.found.homes.iter().find(|(task, _)| task.as_str() == self.task)?;
        let scope = Scope::Task(task.clone());
        let (value, declared_by) = (KnobValue::MaxInFlight(most), self.declarer(&scope));
        Some(KnobSetting { scope, value, origin: Origin::Declared, above: None, declared_by })
    }

    /// The knobs of one scope that are turned.
    fn settings(&self, standing: &Standing) -> Vec<KnobSetting> {
        let Standing { scope, declared, overrides, is_paused } = standing;
        let rates = |rates: &Vec<Rate>| KnobValue::Rates(rates.clone());
        let pairs = [
            (is_paused.then_some(KnobValue::Paused), None),
            (
                overrides.max_concurrent.map(KnobValue::MaxConcurrent),
                declared.max_concurrent.map(KnobValue::MaxConcurrent),
            ),
            (
                overrides.rates.as_ref().map(rates),
                Some(&declared.rates).filter(|rates| !rates.is_empty()).map(rates),
            ),
            (
                overrides.max_pending.map(KnobValue::MaxPending),
                declared.max_pending.map(KnobValue::MaxPending),
            ),
        ];
        let setting = |(set, declared): (Option<KnobValue>, Option<KnobValue>)| {
            let declared_by = declared.as_ref().and_then(|_| self.declarer(scope));
            let (value, origin, above) = match (set, declared) {
                (Some(set), declared) => (set, Origin::Set, declared),
                (None, declared) => (declared?, Origin::Declared, None),
            };
            Some(KnobSetting { scope: scope.clone(), value, origin, above, declared_by })
        };
        pairs.into_iter().filter_map(setting).collect()
    }

    /// The youngest live worker that declares something of a scope.
    fn declarer(&self, scope: &Scope) -> Option<Declarer> {
        let declares = |worker: &&WorkerFacts| worker.declared.iter().any(|(of, _)| of == scope);
        let youngest = self.found.workers.iter().rev().find(declares)?;
        Some(Declarer { worker: youngest.worker, label: youngest.label.clone() })
    }

    fn in_queue(&self, of: TaskStats, stats: &Stats) -> TaskInQueue {
        let mut alive: Vec<LiveWorker> =
            stats.workers.iter().rev().map(|worker| live(worker, &of.queue, self.task)).collect();
        let takes = |worker: &&LiveWorker| worker.links_task && worker.serves_queue;
        let takers = alive.iter().filter(takes).count() as u64;
        let taken_by = alive.iter().filter(takes).take(MOST_NAMED).cloned().collect();
        let mut causes = stats.queue(&of.queue).map(|queue| queue.shut_by.clone()).unwrap_or_default();
        causes.extend(of.shut_by.iter().cloned());
        if takers == 0 {
            let total = alive.len() as u64;
            alive.sort_by_key(|worker| !(worker.links_task || worker.serves_queue));
            alive.truncate(MOST_NAMED);
            causes.push(Cause::NoWorker { alive, total });
        }
        causes.sort_by_key(Cause::place);
        TaskInQueue { stats: of, causes, taken_by, takers }
    }
}

/// The order in which the knobs of a scope are told; `None` for one that is not.
fn place(scope: &Scope, task: &str, home: Option<&str>) -> Option<u8> {
    match scope {
        Scope::Task(of) if of.as_str() == task => Some(0),
        Scope::EachPartition(of) if of.as_str() == task => Some(1),
        Scope::Queue(queue) if Some(queue.as_str()) == home => Some(2),
        _ => None,
    }
}

/// A task that has no job in its home queue, and that no live worker links.
fn nothing_in(queue: &str, task: &str) -> TaskStats {
    TaskStats::of_none(TaskCounts { queue: queue.into(), task: task.into(), ..TaskCounts::default() })
}

fn live(worker: &WorkerStats, queue: &str, task: &str) -> LiveWorker {
    LiveWorker {
        worker: worker.worker,
        label: worker.label.clone(),
        links_task: worker.links(task),
        serves_queue: worker.serves(queue),
    }
}
