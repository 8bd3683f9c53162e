//! stats: the facts of the whole store. Who lives and what holds is one step; what each queue has, a step of each.

use std::collections::BTreeMap;

use redis::Value;

use super::explain::ShutGate;
use super::fleet::{gate, read_limits, read_scope, read_standings};
use super::wire::{Parts, Unpacked, unreadable};
use super::{Shared, scripts};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::name::Name;
use crate::store::explanation::{Cause, MOST_LEASES_SEEN, Origin};
use crate::store::samples::StoredSample;
use crate::store::stats::{LEAST_HEADS_SEEN, MOST_HEADS_SEEN, QueueFacts, Snapshot, TaskFacts, WorkerFacts};
use crate::store::types::{Limits, Scope, Standing, TaskCounts, WorkerId};

pub(super) async fn stats(store: &Shared) -> Result<Snapshot> {
    let mut found = fleet(store).await?;
    let held: BTreeMap<Scope, Standing> =
        found.standings.iter().map(|standing| (standing.scope.clone(), standing.clone())).collect();
    for queue in store.queues().await? {
        read_queue(store, &queue, &held, &mut found).await?;
    }
    found.sort();
    Ok(found)
}

/// What the whole store knows.
async fn fleet(store: &Shared) -> Result<Snapshot> {
    let place = store.place();
    let answer = store.run_fleet(&scripts::FLEET_STATS, vec![]).await?;
    let mut parts = Parts::of(answer, place);
    let at = Timestamp::from_millis(parts.number()?);
    let (mut told, mut homes) = (Parts::of(parts.value(), place), Parts::of(parts.value(), place));
    let mut workers = Vec::new();
    while !told.is_empty() {
        workers.push(read_worker(&mut told, place)?);
    }
    let mut tasks = Vec::new();
    while !homes.is_empty() {
        tasks.push((Name::new("task", homes.text()?)?, Name::new("queue", homes.text()?)?));
    }
    let standings = read_standings(Parts::of(parts.value(), place), place)?;
    let samples = read_samples(parts.value(), place)?;
    Ok(Snapshot { at, queues: vec![], tasks: vec![], workers, homes: tasks, standings, samples, stale: 0 })
}

fn read_samples(kept: Value, place: &str) -> Result<Vec<StoredSample>> {
    let Value::Array(kept) = kept else { return Ok(Vec::new()) };
    // What is not there is nil.
    let kept = kept.into_iter().filter(|part| *part != Value::Nil).collect();
    let (mut parts, mut samples) = (Parts::of(Value::Array(kept), place), Vec::new());
    while !parts.is_empty() {
        samples.push(StoredSample { at: Timestamp::from_millis(parts.number()?), text: parts.text()? });
    }
    Ok(samples)
}

/// Keeps a sample, unless somebody else has kept one after the one that its writer saw.
pub(super) async fn keep_sample(store: &Shared, after: Option<Timestamp>, text: String) -> Result<bool> {
    let after = after.map(|at| at.as_millis().to_string()).unwrap_or_default();
    let answer = store.run_fleet(&scripts::FLEET_SAMPLE, vec![after.into_bytes(), text.into_bytes()]).await?;
    Ok(Parts::of(answer, store.place()).number()? > 0)
}

fn read_worker(told: &mut Parts<'_>, place: &str) -> Result<WorkerFacts> {
    let other = || unreadable(place, "a worker of another form");
    let worker = WorkerId::from_bytes(Unpacked(&told.bytes()?).id().ok_or_else(other)?);
    let label = told.text()?;
    let (since, beat_at) = (Timestamp::from_millis(told.number()?), Timestamp::from_millis(told.number()?));
    let words: BTreeMap<String, String> = serde_json::from_slice(&told.bytes()?).map_err(|_| other())?;
    // The crons among them are shown with the schedules.
    let limits = words.iter().filter(|(scope, _)| !scope.starts_with("s:"));
    let declared = limits.map(|(scope, word)| Some((read_scope(scope)?, read_limits(word)?)));
    let declared: Vec<(Scope, Limits)> = declared.collect::<Option<_>>().ok_or_else(other)?;
    let report = Some(told.text()?).filter(|report| !report.is_empty());
    Ok(WorkerFacts { worker, label, since, beat_at, declared, report })
}

/// What one queue has, and whether its copies of limits are what holds.
async fn read_queue(
    store: &Shared,
    queue: &Name,
    held: &BTreeMap<Scope, Standing>,
    found: &mut Snapshot,
) -> Result<()> {
    let args = [MOST_LEASES_SEEN, MOST_HEADS_SEEN, LEAST_HEADS_SEEN];
    let args = args.map(|bound| bound.to_string().into_bytes()).to_vec();
    let answer = store.run(&scripts::STATS, queue, args).await?;
    let mut parts = Parts::of(answer, store.place());
    let mut count = || parts.number().map(i64::unsigned_abs);
    let (pending, running, startable) = (count()?, count()?, count()?);
    let mut look = Look { place: store.place(), held, stale: 0 };
    let scope = Scope::Queue(queue.clone());
    look.copy(&scope, &parts.text()?);
    let shut_by = look.shut_by(&mut parts, &scope)?;
    found.queues.push(QueueFacts { queue: queue.clone(), pending, running, startable, shut_by });
    let mut tasks = Parts::of(parts.value(), store.place());
    while !tasks.is_empty() {
        let mut task = Parts::of(tasks.value(), store.place());
        let facts = look.task(queue, &mut task)?;
        if !facts.counts.is_empty() {
            found.tasks.push(facts);
        }
    }
    found.stale += look.stale;
    Ok(())
}

/// What is read by.
struct Look<'a> {
    place: &'a str,
    held: &'a BTreeMap<Scope, Standing>,
    stale: u64,
}

impl Look<'_> {
    fn task(&mut self, queue: &Name, parts: &mut Parts<'_>) -> Result<TaskFacts> {
        let task = Name::new("task", parts.text()?)?;
        let mut count = || parts.number().map(i64::unsigned_abs);
        let counts = TaskCounts {
            queue: queue.to_string(),
            task: task.to_string(),
            scheduled: count()?,
            ready: count()?,
            running: count()?,
            succeeded: count()?,
            dead: count()?,
            cancelled: count()?,
            expired: count()?,
        };
        let (in_partitions, startable) = (count()?, count()?);
        let mut moment = || parts.text().map(|ms| ms.parse().ok().map(Timestamp::from_millis));
        let (oldest_ready_at, oldest_run_at) = (moment()?, moment()?);
        let scope = Scope::Task(task);
        self.copy(&scope, &parts.text()?);
        let shut_by = self.shut_by(parts, &scope)?;
        Ok(TaskFacts { counts, startable, in_partitions, oldest_ready_at, oldest_run_at, shut_by })
    }

    fn shut_by(&self, parts: &mut Parts<'_>, scope: &Scope) -> Result<Vec<Cause>> {
        let shut = ShutGate::read(parts)?.ok_or_else(|| unreadable(self.place, "holders of another form"))?;
        let set = self.held.get(scope).map(|standing| standing.overrides.clone()).unwrap_or_default();
        let origin = |is_set| if is_set { Origin::Set } else { Origin::Declared };
        Ok(shut.causes(scope, (origin(set.max_concurrent.is_some()), origin(set.rates.is_some()))))
    }

    /// Sees whether a queue's copy of a limit, without what runs have said, is what holds.
    fn copy(&mut self, scope: &Scope, copy: &str) {
        const NONE: &str = "0||";
        let holds = self.held.get(scope).map(gate);
        let holds = holds.as_deref().and_then(|row| row.rsplit_once('|')).map_or(NONE, |(gate, _)| gate);
        let (paused, rest) = copy.split_once('|').unwrap_or(("0", "|"));
        let paused = paused.split_once('@').map_or(paused, |(paused, _)| paused);
        let is_same =
            holds.split_once('|').is_some_and(|(is_paused, limits)| is_paused == paused && limits == rest);
        self.stale += u64::from(!is_same);
    }
}
