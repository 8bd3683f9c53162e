//! What a worker runs and has run, counted for its report to the store: what each beat tells of it.
//!
//! The pump tells it of every start and end, which costs a lock that nobody else holds and a few additions. The heartbeat
//! writes the report. It needs no recorder; figures for one are the meter's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::plan::Plan;
use super::slots::slot_of;
use crate::clock::Timestamp;
use crate::job::Outcome;
use crate::name::Name;
use crate::store::{Claimed, Ended, Report, Runs};
use crate::task::Kind;

/// What a worker runs and has run. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    book: Arc<Mutex<Book>>,
}

#[derive(Debug)]
struct Book {
    queues: Vec<Name>,
    /// Each with the index of its kind of slot.
    tasks: Vec<(Name, usize)>,
    slots: [u32; 2],
    busy: [u32; 2],
    /// By queue and task; there once a job of it has started.
    runs: Vec<Option<Box<OfTask>>>,
}

/// What was started of one task from one queue.
#[derive(Debug, Default)]
struct OfTask {
    /// When those that run now were started, and how many at each moment.
    running: BTreeMap<Timestamp, u32>,
    last_start: Timestamp,
    started: u64,
    waited: Duration,
    ended: Ended,
    ran: Duration,
}

/// A run that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Underway {
    stream: usize,
    task: usize,
    /// The store's moment of its start.
    claimed_at: Timestamp,
    /// The same by the monotonic clock.
    begun: Duration,
}

impl Tally {
    pub(super) fn new(plan: &Plan) -> Self {
        let tasks: Vec<_> =
            plan.tasks.iter().map(|task| (task.name.clone(), slot_of(task.definition.kind))).collect();
        let queues: Vec<_> = plan.queues.iter().map(|queue| queue.name.clone()).collect();
        let runs = (0..queues.len() * tasks.len()).map(|_| None).collect();
        let book = Book { queues, tasks, slots: plan.slots, busy: [0; 2], runs };
        Self { book: Arc::new(Mutex::new(book)) }
    }

    /// A job has been claimed and starts.
    pub(super) fn started(
        &self,
        (stream, task): (usize, usize),
        claimed: &Claimed,
        begun: Duration,
    ) -> Underway {
        let mut book = self.lock();
        let slot = book.tasks[task].1;
        book.busy[slot] += 1;
        let of_task = book.of_task(stream, task);
        *of_task.running.entry(claimed.claimed_at).or_default() += 1;
        of_task.last_start = claimed.claimed_at;
        of_task.started += 1;
        // Both moments are the store's.
        of_task.waited += claimed.claimed_at.since(claimed.ready_at);
        Underway { stream, task, claimed_at: claimed.claimed_at, begun }
    }

    /// A run has ended, perhaps after its lease was lost.
    pub(super) fn ended(&self, run: Underway, outcome: &Outcome, is_lost: bool, now: Duration) {
        let mut book = self.lock();
        let slot = book.tasks[run.task].1;
        book.busy[slot] -= 1;
        let of_task = book.of_task(run.stream, run.task);
        if let Some(runs) = of_task.running.get_mut(&run.claimed_at) {
            *runs -= 1;
            if *runs == 0 {
                of_task.running.remove(&run.claimed_at);
            }
        }
        *counter(&mut of_task.ended, outcome, is_lost) += 1;
        of_task.ran += now.saturating_sub(run.begun);
    }

    /// What a beat tells the store.
    pub(super) fn report(&self) -> Report {
        let book = self.lock();
        let slots = |slot: usize| (book.slots[slot], book.busy[slot]);
        let count = book.tasks.len();
        let mut runs: Vec<(Timestamp, Runs)> = (book.runs.iter().enumerate())
            .filter_map(|(index, of_task)| {
                let of_task = of_task.as_deref()?;
                let (queue, task) = (&book.queues[index / count], &book.tasks[index % count]);
                Some((of_task.last_start, of_task.told(queue, task)))
            })
            .collect();
        // Where not all can be told, the last are left out.
        runs.sort_by_key(|(last_start, _)| std::cmp::Reverse(*last_start));
        let runs = runs.into_iter().map(|(_, runs)| runs).collect();
        Report { async_slots: slots(0), plain_slots: slots(1), runs, left_out: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // Nothing in here panics, and figures that are off by one harm nobody.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn of_task(&mut self, stream: usize, task: usize) -> &mut OfTask {
        let index = stream * self.tasks.len() + task;
        self.runs[index].get_or_insert_default()
    }
}

impl OfTask {
    fn told(&self, queue: &Name, (task, slot): &(Name, usize)) -> Runs {
        Runs {
            queue: queue.to_string(),
            task: task.to_string(),
            is_plain: *slot == slot_of(Kind::Plain),
            running: self.running.values().copied().map(u64::from).sum(),
            oldest_run_at: self.running.keys().next().map(|oldest| oldest.as_millis()),
            ended: self.ended,
            started: self.started,
            waited_ms: whole_millis(self.waited),
            ran_ms: whole_millis(self.ran),
        }
    }
}

fn whole_millis(sum: Duration) -> u64 {
    u64::try_from(sum.as_millis()).unwrap_or(u64::MAX)
}

/// Where an end is counted.
fn counter<'a>(ended: &'a mut Ended, outcome: &Outcome, is_lost: bool) -> &'a mut u64 {
    match outcome {
        _ if is_lost => &mut ended.lost,
        Outcome::Succeeded(_) => &mut ended.succeeded,
        Outcome::Failed { .. } | Outcome::Panicked { .. } | Outcome::TimedOut(_) => &mut ended.failed,
        // A job that goes back to its place or into a line was put off, too.
        Outcome::Deferred(_) | Outcome::Held(_) | Outcome::Limited(_) => &mut ended.deferred,
        Outcome::Undecodable { .. } => &mut ended.undecodable,
        Outcome::Released => &mut ended.released,
        Outcome::Cancelled => &mut ended.cancelled,
    }
}
