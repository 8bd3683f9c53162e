//! What acts amount to: who waits, who runs, and what every gate says.

use std::collections::{BTreeMap, BTreeSet};

use flexiq::JobId;
use flexiq::internals::{Change, Limits, Overrides, Scope, Standing};

use super::starts::{Starts, Word};
use crate::ledger::{Deed, Lane, Place};

/// The state of all gates after some acts.
#[derive(Debug, Default)]
pub(super) struct Scene {
    /// The jobs that wait, also for their time.
    pub(super) waiting: BTreeMap<JobId, (Lane, Place)>,
    leased: BTreeMap<JobId, Lane>,
    declared: BTreeMap<Scope, Limits>,
    set: BTreeMap<Scope, Overrides>,
    paused: BTreeSet<Scope>,
    held: BTreeMap<Scope, i64>,
    starts: BTreeMap<Scope, Starts>,
}

/// Why a gate lets nothing start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shut {
    Paused,
    Held,
    Full { cap: usize, found: usize },
    Spent(Word),
}

impl Scene {
    /// Takes in an act that is not a claim.
    pub(super) fn take(&mut self, now: i64, deed: &Deed) {
        match deed {
            Deed::Waits { job, lane, place } => {
                self.waiting.insert(*job, (lane.clone(), *place));
            }
            Deed::Gone { job } => {
                self.waiting.remove(job);
            }
            Deed::Freed { job } => {
                self.leased.remove(job);
            }
            Deed::Declared { limits } => {
                self.pass(now);
                self.declared = limits.iter().cloned().collect();
            }
            Deed::Set { scope, change } => {
                self.pass(now);
                self.set(scope, change);
            }
            Deed::Held { scope, until } => {
                let held = self.held.entry(scope.clone()).or_insert(*until);
                *held = (*held).max(*until);
            }
            Deed::Claimed { .. } => {}
        }
    }

    fn set(&mut self, scope: &Scope, change: &Change) {
        let overrides = self.set.entry(scope.clone()).or_default();
        match change {
            Change::MaxConcurrent(cap) => overrides.max_concurrent = *cap,
            Change::Rates(rates) => overrides.rates.clone_from(rates),
            Change::MaxPending(most) => overrides.max_pending = *most,
            Change::Paused(true) => drop(self.paused.insert(scope.clone())),
            // Resuming ends a hold, too.
            Change::Paused(false) => {
                self.paused.remove(scope);
                self.held.remove(scope);
            }
        }
    }

    /// Lets time pass under the rates in force, before they change.
    fn pass(&mut self, now: i64) {
        let mut starts = std::mem::take(&mut self.starts);
        for (scope, starts) in &mut starts {
            starts.pass(now, &self.limits(scope).rates);
        }
        self.starts = starts;
    }

    /// What holds at a gate.
    fn limits(&self, scope: &Scope) -> Limits {
        let declares = match scope {
            Scope::Partition(task, _) => &Scope::EachPartition(task.clone()),
            other => other,
        };
        let declared = self.declared.get(declares).cloned().unwrap_or_default();
        let overrides = self.set.get(scope).cloned().unwrap_or_default();
        Standing { scope: scope.clone(), declared, overrides, is_paused: false }.limits()
    }

    /// What a gate says to one more start.
    pub(super) fn ask(&self, now: i64, scope: &Scope) -> Result<Word, Shut> {
        if self.paused.contains(scope) {
            return Err(Shut::Paused);
        }
        if self.held.get(scope).is_some_and(|&until| until > now) {
            return Err(Shut::Held);
        }
        let limits = self.limits(scope);
        if let Some(cap) = limits.max_concurrent.map(|cap| cap as usize) {
            let running = self.leased.values().filter(|lane| lane.gates().contains(scope)).count();
            if running >= cap {
                return Err(Shut::Full { cap, found: running + 1 });
            }
        }
        match self.starts.get(scope).map_or(Word::Yes, |starts| starts.ask(now, &limits.rates)) {
            no @ Word::No { .. } => Err(Shut::Spent(no)),
            word => Ok(word),
        }
    }

    /// Whether a job that waits may surely start.
    pub(super) fn is_open(&self, now: i64, lane: &Lane) -> bool {
        lane.gates().iter().all(|scope| self.ask(now, scope) == Ok(Word::Yes))
    }

    /// A job has started: every gate of it has one more.
    pub(super) fn start(&mut self, now: i64, job: JobId) {
        let (lane, _) = self.waiting.remove(&job).expect("it waited");
        for scope in lane.gates() {
            let rates = self.limits(&scope).rates;
            let starts = self.starts.entry(scope).or_default();
            starts.pass(now, &rates);
            starts.add(now, &rates);
        }
        self.leased.insert(job, lane);
    }
}
