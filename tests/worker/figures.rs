//! What a worker tells a recorder of the `metrics` crate, read by a recorder of this test's own thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flexiq::{Queue, Retry, Worker};
use flexiq_tests::{Journal, soon, until};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tokio::sync::Notify;

use super::queue;

#[derive(Clone, Default)]
struct Gate(Arc<Notify>);

#[flexiq::task(max_retries = 0, partition_by = account)]
async fn measured(
    account: u32,
    ending: String,
    #[state] journal: Journal,
    #[state] gate: Gate,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    journal.note(&ending);
    gate.0.notified().await;
    match &*ending {
        "fails" => Err(format!("account {account} is no good").into()),
        "defers" => Err(Retry::after(Duration::from_secs(3_600)).into()),
        _ => Ok(()),
    }
}

#[flexiq::task]
fn measured_plain(#[state] journal: Journal) {
    journal.note("plain");
}

/// All that was recorded, by name and labels.
#[derive(Clone, Debug, Default)]
struct Seen {
    values: Arc<Mutex<BTreeMap<String, Arc<Value>>>>,
    units: Arc<Mutex<BTreeMap<String, (Unit, String)>>>,
}

/// What was recorded of one figure: a sum, or each value of a histogram.
#[derive(Debug, Default)]
struct Value(Mutex<Vec<f64>>);

impl Seen {
    fn of(&self, key: &Key) -> Arc<Value> {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        self.values.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone()
    }

    fn describe(&self, key: KeyName, unit: Option<Unit>, words: SharedString) {
        let unit = unit.expect("each has a unit");
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        units.insert(key.as_str().to_owned(), (unit, words.to_string()));
    }

    /// The sum of a counter or a gauge.
    fn sum(&self, name: &str) -> f64 {
        self.all(name).iter().sum()
    }

    fn all(&self, name: &str) -> Vec<f64> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(value) = values.get(name) else { panic!("no {name} in {:?}", values.keys()) };
        value.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn names(&self) -> Vec<String> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl Recorder for Seen {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, words: SharedString) {
        self.describe(key, unit, words);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, words: SharedString) {
        self.describe(key, unit, words);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, words: SharedString) {
        self.describe(key, unit, words);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.of(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.of(key))
    }
}

impl Value {
    fn push(&self, value: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

impl CounterFn for Value {
    fn increment(&self, value: u64) {
        self.push(value as f64);
    }

    fn absolute(&self, _: u64) {
        panic!("several workers of a process add up");
    }
}

impl GaugeFn for Value {
    fn increment(&self, value: f64) {
        self.push(value);
    }

    fn decrement(&self, value: f64) {
        self.push(-value);
    }

    fn set(&self, _: f64) {
        panic!("several workers of a process add up");
    }
}

impl HistogramFn for Value {
    fn record(&self, value: f64) {
        self.push(value);
    }
}

async fn start(queue: &Queue, journal: &Journal, gate: &Gate) -> Worker {
    let builder =
        queue.worker().tasks([task_measured(), task_measured_plain()]).async_concurrency(5).workers(2);
    builder.state(journal.clone()).state(gate.clone()).start().await.expect("it starts")
}

fn slots(seen: &Seen, kind: &str) -> [f64; 2] {
    ["free", "busy"].map(|state| seen.sum(&format!("flexiq_slots{{kind={kind},state={state}}}")))
}

#[tokio::test]
async fn runs_are_counted_and_measured_by_task_and_outcome() {
    let seen = Seen::default();
    let _recorded = metrics::set_default_local_recorder(&seen);
    let (queue, clock) = queue().await;
    let (journal, gate) = (Journal::default(), Gate::default());
    let mut jobs = Vec::new();
    for ending in ["succeeds", "succeeds", "fails", "defers"] {
        jobs.push(enqueue_measured(&queue, jobs.len() as u32, ending.into()).await.expect("stored"));
    }
    clock.advance(Duration::from_secs(7));
    let worker = start(&queue, &journal, &gate).await;
    for (ending, times) in [("succeeds", 2), ("fails", 1), ("defers", 1)] {
        journal.wait_for(ending, times).await;
    }
    assert_eq!(seen.sum("flexiq_running{task=measured}"), 4.0);
    assert_eq!((slots(&seen, "async"), slots(&seen, "plain")), ([1.0, 4.0], [2.0, 0.0]));
    assert_eq!(seen.all("flexiq_wait_seconds{task=measured}"), [7.0; 4], "from being ready to the start");
    clock.advance(Duration::from_secs(2));
    gate.0.notify_waiters();
    for job in &jobs {
        until(&queue, job.id(), "its run has ended", |job| {
            job.runs == 1 && !matches!(job.state, flexiq::State::Running)
        })
        .await;
    }
    for (outcome, times) in [("succeeded", 2.0), ("failed", 1.0), ("deferred", 1.0), ("released", 0.0)] {
        assert_eq!(
            seen.sum(&format!("flexiq_runs_total{{task=measured,outcome={outcome}}}")),
            times,
            "{outcome}"
        );
    }
    assert_eq!(seen.all("flexiq_run_seconds{task=measured}"), [2.0; 4]);
    assert_eq!(seen.sum("flexiq_running{task=measured}"), 0.0);
    assert_eq!(slots(&seen, "async"), [5.0, 0.0]);
    let before = seen.names();
    enqueue_measured_plain(&queue).await.expect("stored");
    let more = enqueue_measured(&queue, 99, "succeeds".into()).await.expect("stored");
    journal.wait_for("succeeds", 3).await;
    gate.0.notify_waiters();
    until(&queue, more.id(), "it ends", |job| job.state.is_ended()).await;
    assert_eq!(seen.names(), before, "no job and no partition brings a figure of its own");
    soon("it stops", worker.shutdown()).await.expect("it stops");
    assert_eq!(
        (slots(&seen, "async"), slots(&seen, "plain")),
        ([0.0; 2], [0.0; 2]),
        "its slots went with it"
    );
}

#[tokio::test]
async fn each_figure_is_described_with_its_unit_and_no_label_but_task_outcome_kind_and_state() {
    let seen = Seen::default();
    let _recorded = metrics::set_default_local_recorder(&seen);
    let (queue, _clock) = queue().await;
    let worker = start(&queue, &Journal::default(), &Gate::default()).await;
    let units = seen.units.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let told: Vec<(&str, Unit)> = units.iter().map(|(name, (unit, _))| (&**name, *unit)).collect();
    assert_eq!(
        told,
        [
            ("flexiq_run_seconds", Unit::Seconds),
            ("flexiq_running", Unit::Count),
            ("flexiq_runs_total", Unit::Count),
            ("flexiq_slots", Unit::Count),
            ("flexiq_wait_seconds", Unit::Seconds),
        ]
    );
    assert!(units.values().all(|(_, words)| !words.is_empty()));
    // Two tasks with six outcomes, two times and a number of runs each, and two kinds of slots in two states.
    assert_eq!(seen.names().len(), 2 * (6 + 3) + 4, "{:?}", seen.names());
    soon("it stops", worker.shutdown()).await.expect("it stops");
}
