//! warnings: what is wrong with a store as a whole, found in one look and in the two samples before it. Each says what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::sample::{Sample, SampledTask, limits_before};
use super::stats::{RunStats, SlotStats, Stats, TaskStats, WorkerStats};
use super::{Answer, Declarer, Queue};
use crate::clock::Timestamp;
use crate::store::{Cause, Limits, Scope, Snapshot, TaskFacts, WorkerFacts};

/// A run is not worth a warning before it has run so long, however short others are.
const LEAST_RUN: Duration = Duration::from_secs(10);
/// What a task usually takes is known by so many runs,
const LEAST_RUNS: u64 = 10;
/// and a run is odd that takes so many times as long.
const MANY_TIMES: u32 = 10;

/// Something that is wrong with a store as a whole.
///
/// Its [`Display`](std::fmt::Display) says it in a few sentences, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A cap or a rate lets fewer jobs of a task through than come: its backlog grows, and will until one of both changes.
    LimitTooLow {
        /// The queue.
        queue: String,
        /// The task.
        task: String,
        /// The caps that are full and the rates that are spent.
        causes: Vec<Cause>,
        /// Jobs of it that are pending.
        pending: u64,
        /// By how many they have grown for each hour, between the last two samples.
        growth_per_hour: u64,
    },
    /// A task that no gate keeps waits longer and longer, while another holds more than half of the slots of a worker that
    /// would take it, and none is free.
    Starved {
        /// The queue.
        queue: String,
        /// The task that waits.
        task: String,
        /// How long its oldest ready job has waited.
        waits: Duration,
        /// The task that holds the slots.
        by: String,
        /// How many it holds,
        held: u64,
        /// of so many of this kind.
        slots: u32,
        /// The worker whose slots they are; others may be held likewise.
        worker: Declarer,
    },
    /// Live workers declare different limits: the youngest one's hold, whichever is meant.
    DeclarationsDiffer {
        /// What is limited.
        scope: Scope,
        /// The youngest worker that declares it, and what therefore holds unless something is set at runtime.
        holds: (Declarer, Limits),
        /// The youngest that declares something else.
        other: (Declarer, Limits),
    },
    /// Jobs wait for a worker that does not exist: no live one both links their task and serves their queue.
    Stranded {
        /// The queue.
        queue: String,
        /// The task.
        task: String,
        /// How many are pending.
        jobs: u64,
        /// How many workers are alive.
        workers: u64,
    },
    /// A run has lasted ten times as long as those of its task usually do, as far as the live workers know at least ten of them.
    RunTooLong {
        /// The queue.
        queue: String,
        /// The task.
        task: String,
        /// How long it has lasted.
        lasts: Duration,
        /// How long runs of the task took on average.
        usual: Duration,
    },
}

impl Queue {
    /// What is wrong with the store as a whole: limits below the rate at which jobs arrive, tasks that starve others, workers
    /// that declare different things, jobs that nobody takes, runs that do not end. Empty if nothing is.
    ///
    /// It is one look, as [`stats`](Self::stats) is, beside two samples of what waited: while workers live, one of them takes
    /// a sample every five minutes, and then says the warnings once in the log. What grows is known after two.
    ///
    /// # Errors
    ///
    /// What the store says if it cannot be asked.
    ///
    /// ```
    /// use flexiq::{Queue, Warning};
    ///
    /// #[flexiq::task(queue = "videos")]
    /// async fn encode_film(file: String) {
    ///     println!("{file}");
    /// }
    ///
    /// #[tokio::main]
    /// async fn main() -> flexiq::Result<()> {
    ///     let queue = Queue::open("sqlite::memory:").await?;
    ///     enqueue_encode_film(&queue, "cats.mkv".into()).await?;
    ///
    ///     let warnings = queue.warnings().await?;
    ///     assert!(matches!(warnings[..], [Warning::Stranded { jobs: 1, .. }]));
    ///     println!("{}", warnings[0]); // 1 job of task encode_film in queue videos waits for a worker that does not exist: …
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias = "alerts")]
    pub fn warnings(&self) -> Answer<Vec<Warning>> {
        let store = self.store().clone();
        Answer::new(async move { Ok(Warning::all(&store.stats().await?)) })
    }
}

impl Warning {
    /// All that is wrong in what was found.
    pub(super) fn all(found: &Snapshot) -> Vec<Self> {
        let stats = Stats::of(found);
        let samples: Vec<Sample> = found.samples.iter().map(Sample::read).collect();
        let mut warnings = Vec::new();
        warnings.extend(stats.tasks.iter().filter_map(|task| stranded(task, &stats)));
        if let [before, newest] = &samples[..] {
            warnings.extend(found.tasks.iter().filter_map(|task| limit_too_low(task, found, before, newest)));
            warnings.extend(starved(&stats, before, newest));
        }
        warnings.extend(stats.tasks.iter().filter_map(|task| run_too_long(task, &stats)));
        warnings.extend(declarations_differ(found));
        warnings
    }
}

fn stranded(task: &TaskStats, stats: &Stats) -> Option<Warning> {
    task.is_stranded.then(|| Warning::Stranded {
        queue: task.queue.clone(),
        task: task.task.clone(),
        jobs: task.counts.pending(),
        workers: stats.workers.len() as u64,
    })
}

fn limit_too_low(task: &TaskFacts, found: &Snapshot, before: &Sample, newest: &Sample) -> Option<Warning> {
    let (queue, name) = (&task.counts.queue, &task.counts.task);
    let causes = limits_before(task, found);
    let now = newest.task(queue, name).filter(|now| now.is_limited && !causes.is_empty())?;
    let grown = now.pending.saturating_sub(before.task(queue, name).map_or(0, |before| before.pending));
    let seconds = newest.at.since(before.at).as_secs().max(1);
    (grown > 0).then(|| Warning::LimitTooLow {
        queue: queue.clone(),
        task: name.clone(),
        causes,
        pending: task.counts.pending(),
        growth_per_hour: (grown.saturating_mul(3_600) / seconds).max(1),
    })
}

/// The tasks that wait longer and longer while another holds most slots of a worker that would take them.
fn starved(stats: &Stats, before: &Sample, newest: &Sample) -> Vec<Warning> {
    let at = Timestamp::from(stats.at);
    let waits = |task: &&TaskStats| {
        let since = task.oldest_ready_at.map(Timestamp::from)?;
        let waited = |sample: &Sample| wait_in(sample.task(&task.queue, &task.task)?, sample.at);
        let (first, then, now) = (waited(before)?, waited(newest)?, at.since(since));
        (task.startable > 0 && first < then && then <= now).then_some(now)
    };
    let waiting: Vec<(&TaskStats, Duration)> =
        stats.tasks.iter().filter_map(|task| Some((task, waits(&task)?))).collect();
    let kinds = kinds(stats);
    let (mut told, mut warnings) = (BTreeSet::new(), Vec::new());
    for worker in &stats.workers {
        for hog in worker.runs.iter().filter(|runs| holds_most(runs, worker)) {
            let is_other = |task: &TaskStats| {
                let kind = kinds.get(&(&*task.queue, &*task.task));
                task.task != hog.task
                    && worker.takes(&task.queue, &task.task)
                    && kind.is_none_or(|is_plain| *is_plain == hog.is_plain)
            };
            for (task, waits) in waiting.iter().filter(|(task, _)| is_other(task)) {
                if told.insert((&task.queue, &task.task, &hog.task)) {
                    warnings.push(Warning::Starved {
                        queue: task.queue.clone(),
                        task: task.task.clone(),
                        waits: *waits,
                        by: hog.task.clone(),
                        held: hog.running,
                        slots: slots_of(hog, worker).total,
                        worker: Declarer { worker: worker.worker, label: worker.label.clone() },
                    });
                }
            }
        }
    }
    warnings
}

/// How long the oldest ready job of a task had waited when it was sampled.
fn wait_in(task: &SampledTask, at: Timestamp) -> Option<Duration> {
    task.oldest_ready_at.map(|since| at.since(Timestamp::from_millis(since)))
}

/// Whether a task holds more than half of the slots of its kind in a worker, and none of them is free.
fn holds_most(runs: &RunStats, worker: &WorkerStats) -> bool {
    let SlotStats { total, busy, .. } = slots_of(runs, worker);
    total > 0 && busy >= total && runs.running * 2 > u64::from(total)
}

fn slots_of(runs: &RunStats, worker: &WorkerStats) -> SlotStats {
    if runs.is_plain { worker.plain_slots } else { worker.async_slots }
}

/// Of each task that any worker has run, whether its function is a plain one.
fn kinds(stats: &Stats) -> BTreeMap<(&str, &str), bool> {
    let all = stats.workers.iter().flat_map(|worker| &worker.runs);
    all.map(|runs| ((&*runs.queue, &*runs.task), runs.is_plain)).collect()
}

fn run_too_long(task: &TaskStats, stats: &Stats) -> Option<Warning> {
    let lasts = stats.at.duration_since(task.oldest_run_at?).ok().filter(|lasts| *lasts >= LEAST_RUN)?;
    let all = stats.workers.iter().flat_map(|worker| &worker.runs);
    let ours = all.filter(|runs| runs.queue == task.queue && runs.task == task.task);
    let (ran, runs) =
        ours.fold((Duration::ZERO, 0), |(ran, runs), of| (ran + of.ran, runs + of.ended.total()));
    if runs < LEAST_RUNS {
        return None;
    }
    let usual = ran / u32::try_from(runs).unwrap_or(u32::MAX);
    (lasts > usual * MANY_TIMES).then(|| Warning::RunTooLong {
        queue: task.queue.clone(),
        task: task.task.clone(),
        lasts,
        usual,
    })
}

/// One warning for each scope that live workers declare differently.
fn declarations_differ(found: &Snapshot) -> Vec<Warning> {
    let mut youngest: BTreeMap<&Scope, (&WorkerFacts, &Limits)> = BTreeMap::new();
    let mut differing: BTreeMap<&Scope, Warning> = BTreeMap::new();
    for worker in found.workers.iter().rev() {
        for (scope, limits) in &worker.declared {
            let (holder, held) = *youngest.entry(scope).or_insert((worker, limits));
            if held != limits {
                differing.entry(scope).or_insert_with(|| Warning::DeclarationsDiffer {
                    scope: scope.clone(),
                    holds: (declarer(holder), held.clone()),
                    other: (declarer(worker), limits.clone()),
                });
            }
        }
    }
    differing.into_values().collect()
}

fn declarer(worker: &WorkerFacts) -> Declarer {
    Declarer { worker: worker.worker, label: worker.label.clone() }
}
