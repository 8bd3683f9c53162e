//! What a worker counts and measures of its runs and slots, told to the program's recorder of the `metrics` crate.
//!
//! The pump tells it of every start and end. Its labels are tasks, kinds, states and outcomes: no label grows with jobs,
//! partitions or queues. `unmetered` stands in its place in a build without the feature `metrics`.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Unit};

use super::plan::Plan;
use super::slots::slot_of;
use crate::clock::Clock;
use crate::job::Outcome;
use crate::store::Claimed;
use crate::task::TaskDefinition;

const RUNS: &str = "flexiq_runs_total";
const WAIT: &str = "flexiq_wait_seconds";
const RUN: &str = "flexiq_run_seconds";
const RUNNING: &str = "flexiq_running";
const SLOTS: &str = "flexiq_slots";

/// How a run may end, as a label.
const OUTCOMES: [&str; 6] = ["succeeded", "failed", "deferred", "undecodable", "released", "cancelled"];

/// The kinds of slots, as a label, in the order of [`slot_of`].
const KINDS: [&str; 2] = ["async", "plain"];

/// The figures of one worker. Those of several in one process add up.
#[derive(Debug)]
pub(super) struct Meter {
    clock: Clock,
    tasks: Vec<OfTask>,
    slots: [OfKind; 2],
}

/// When a run has begun, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun(Duration);

#[derive(Debug)]
struct OfTask {
    slot: usize,
    /// In the order of [`OUTCOMES`].
    runs: [Counter; OUTCOMES.len()],
    wait: Histogram,
    run: Histogram,
    running: Level,
}

#[derive(Debug)]
struct OfKind {
    free: Level,
    busy: Level,
}

/// What this worker adds to a gauge, and takes back in the end.
#[derive(Debug)]
struct Level {
    gauge: Gauge,
    added: f64,
}

impl Meter {
    pub(super) fn new(plan: &Plan, clock: &Clock) -> Self {
        describe();
        let tasks = plan.tasks.iter().map(|task| OfTask::new(task.definition)).collect();
        let slots = [0, 1].map(|slot| OfKind::new(KINDS[slot], plan.slots[slot]));
        Self { clock: clock.clone(), tasks, slots }
    }

    /// A job of this task has been claimed and starts.
    pub(super) fn started(&mut self, task: usize, claimed: &Claimed) -> Begun {
        let task = &mut self.tasks[task];
        // Both moments are the store's.
        task.wait.record(claimed.claimed_at.since(claimed.ready_at));
        task.running.add(1.0);
        self.slots[task.slot].fill(1.0);
        Begun(self.clock.elapsed())
    }

    /// A run of this task has ended.
    pub(super) fn ended(&mut self, task: usize, begun: Begun, outcome: &Outcome) {
        let task = &mut self.tasks[task];
        task.runs[index(outcome)].increment(1);
        task.run.record(self.clock.elapsed().saturating_sub(begun.0));
        task.running.add(-1.0);
        self.slots[task.slot].fill(-1.0);
    }
}

impl OfTask {
    fn new(definition: &TaskDefinition) -> Self {
        let task = definition.name;
        Self {
            slot: slot_of(definition.kind),
            runs: OUTCOMES.map(|outcome| metrics::counter!(RUNS, "task" => task, "outcome" => outcome)),
            wait: metrics::histogram!(WAIT, "task" => task),
            run: metrics::histogram!(RUN, "task" => task),
            running: Level::new(metrics::gauge!(RUNNING, "task" => task), 0),
        }
    }
}

impl OfKind {
    fn new(kind: &'static str, slots: u32) -> Self {
        let level =
            |state, slots| Level::new(metrics::gauge!(SLOTS, "kind" => kind, "state" => state), slots);
        Self { free: level("free", slots), busy: level("busy", 0) }
    }

    fn fill(&mut self, slots: f64) {
        self.free.add(-slots);
        self.busy.add(slots);
    }
}

impl Level {
    fn new(gauge: Gauge, at_first: u32) -> Self {
        let mut level = Self { gauge, added: 0.0 };
        level.add(f64::from(at_first));
        level
    }

    fn add(&mut self, more: f64) {
        self.added += more;
        self.gauge.increment(more);
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.gauge.decrement(self.added);
    }
}

/// The place of an outcome in [`OUTCOMES`].
fn index(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Succeeded(_) => 0,
        Outcome::Failed { .. } | Outcome::Panicked { .. } | Outcome::TimedOut(_) => 1,
        // A job that goes back to its place or into a line was put off, too.
        Outcome::Deferred(_) | Outcome::Held(_) | Outcome::Limited(_) => 2,
        Outcome::Undecodable { .. } => 3,
        Outcome::Released => 4,
        Outcome::Cancelled => 5,
    }
}

/// Tells the recorder what each figure is, and in which unit.
fn describe() {
    metrics::describe_counter!(RUNS, Unit::Count, "runs that have ended, by task and outcome");
    metrics::describe_histogram!(WAIT, Unit::Seconds, "from a job's being ready to its start, by task");
    metrics::describe_histogram!(RUN, Unit::Seconds, "from a run's start to its end, by task");
    metrics::describe_gauge!(RUNNING, Unit::Count, "runs at this moment, by task");
    metrics::describe_gauge!(
        SLOTS,
        Unit::Count,
        "room for running jobs, by kind (async, plain) and state (free, busy)"
    );
}
