//! A cause that keeps a job waiting, in plain sentences: for people who ask, and for logs.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::knobs::Knobs;
use crate::job::{Job, ScheduledReason};
use crate::policy::Rate;
use crate::policy::notation::write_duration;
use crate::store::{Cause, Holder, LiveWorker, MOST_COUNTED, Scope};

/// A cause in words.
pub(super) struct Sentence<'a> {
    pub(super) cause: &'a Cause,
    /// What it keeps waiting.
    pub(super) of: Waiting<'a>,
    /// The store's moment.
    pub(super) at: SystemTime,
}

/// What waits: a job, or all jobs of a task in a queue.
#[derive(Clone, Copy)]
pub(super) struct Waiting<'a> {
    pub(super) queue: &'a str,
    pub(super) task: &'a str,
    pub(super) in_partition: bool,
}

impl<'a> From<&'a Job> for Waiting<'a> {
    fn from(job: &'a Job) -> Self {
        Self { queue: &job.queue, task: &job.task, in_partition: job.partition.is_some() }
    }
}

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.cause {
            Cause::NotDue { reason, due_at } => {
                write!(f, "It is due {}: {}.", In(at, *due_at), reason_of(*reason))
            }
            Cause::Paused { scope } => {
                write!(f, "{} is paused, until {}.", Of(scope), Knobs::of(scope).resume)
            }
            Cause::NoWorker { alive, total } => self.no_worker(f, alive, *total),
            Cause::Held { scope, until } => write!(
                f,
                "{} is held: a run was told that nothing should start. It opens {}, or by {}.",
                Of(scope),
                In(at, *until),
                Knobs::of(scope).resume
            ),
            Cause::Full { scope, max_concurrent, origin, running, holders } => {
                let knob = Knobs::of(scope).cap.named(*origin);
                write!(f, "{} is full: {running} {} and {knob} allows ", Of(scope), run(*running))?;
                write!(f, "{max_concurrent}{}", Running { holders, running: *running, at })
            }
            Cause::Spent { scope, rates, origin, opens_at } => {
                let knob = Knobs::of(scope).rate.named(*origin);
                let opens = In(at, *opens_at);
                write!(
                    f,
                    "{} has spent its rate: {knob} allows {}. It opens {opens}.",
                    Of(scope),
                    list(rates)
                )
            }
            Cause::Behind { jobs, outranked } => {
                let or_more = if *jobs >= MOST_COUNTED { " or more" } else { "" };
                let (noun, stand) = if *jobs == 1 { ("job", "stands") } else { ("jobs", "stand") };
                let lane = if self.of.in_partition { "partition" } else { "task" };
                let why = if *outranked { "by priority" } else { "by age" };
                write!(f, "{jobs}{or_more} {noun} of its {lane} {stand} before it, {why}.")
            }
        }
    }
}

impl Sentence<'_> {
    fn no_worker(&self, f: &mut fmt::Formatter<'_>, alive: &[LiveWorker], total: u64) -> fmt::Result {
        if alive.is_empty() {
            return f.write_str("No worker is alive.");
        }
        let Waiting { task, queue, .. } = self.of;
        write!(f, "No live worker both links task {task} and serves queue {queue}. Alive: ")?;
        for (index, LiveWorker { label, links_task, serves_queue, .. }) in alive.iter().enumerate() {
            let does = match (links_task, serves_queue) {
                (true, false) => "does not serve the queue",
                (false, true) => "does not link the task",
                _ => "does neither",
            };
            write!(f, "{}{label} ({does})", if index > 0 { ", " } else { "" })?;
        }
        more(f, total, alive.len())
    }
}

/// The running jobs that a cap counts.
struct Running<'a> {
    holders: &'a [Holder],
    running: u64,
    at: SystemTime,
}

impl fmt::Display for Running<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Holder { job, worker, started_at }) in self.holders.iter().enumerate() {
            let since = span(*started_at, self.at);
            write!(
                f,
                "{}job {job} on worker {worker} since {since}",
                if index > 0 { ", " } else { ". Running: " }
            )?;
        }
        more(f, self.running, self.holders.len())
    }
}

/// Ends a list of which not all are named.
pub(super) fn more(f: &mut fmt::Formatter<'_>, total: u64, named: usize) -> fmt::Result {
    match total.saturating_sub(named as u64) {
        more if more > 0 && named > 0 => write!(f, ", and {more} more."),
        _ => f.write_str("."),
    }
}

/// A queue, task or partition at the beginning of a sentence.
pub(super) struct Of<'a>(pub(super) &'a Scope);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Scope::Queue(queue) => write!(f, "Queue {queue}"),
            Scope::Task(task) => write!(f, "Task {task}"),
            Scope::EachPartition(task) => write!(f, "Each partition of task {task}"),
            Scope::Partition(task, partition) => write!(f, "Partition {partition:?} of task {task}"),
        }
    }
}

fn reason_of(reason: ScheduledReason) -> &'static str {
    match reason {
        ScheduledReason::Delay => "it was enqueued for later",
        ScheduledReason::Retry => "a run failed, and it is tried again",
        ScheduledReason::Deferral => "a run asked for later",
        ScheduledReason::Limit => {
            "it stands in line for a named limit, and comes then unless it is called before"
        }
    }
}

fn run(jobs: u64) -> &'static str {
    if jobs == 1 { "job runs" } else { "jobs run" }
}

pub(super) fn list(rates: &[Rate]) -> String {
    rates.iter().map(Rate::to_string).collect::<Vec<_>>().join(", ")
}

/// When a moment is, seen from another.
struct In(SystemTime, SystemTime);

impl fmt::Display for In {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 <= self.0 { f.write_str("now") } else { write!(f, "in {}", span(self.0, self.1)) }
    }
}

/// The time between two moments, rounded likewise.
pub(super) fn span(from: SystemTime, to: SystemTime) -> String {
    rounded(to.duration_since(from).unwrap_or_default())
}

/// A time, from ten seconds on in whole ones, rounded up.
pub(super) fn rounded(span: Duration) -> String {
    if span < Duration::from_secs(10) {
        return write_duration(span);
    }
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    write_duration(Duration::from_secs(seconds))
}
