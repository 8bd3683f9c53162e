//! What is only read.

use std::collections::BTreeMap;

use flexiq::internals::{Counts, Stored, TaskCounts};
use flexiq::{Job, JobFailure, State};

use super::record::{Cancel, Record};
use super::world::World;

/// A job, as people see it.
pub(super) fn show(record: &Record) -> Job {
    let mut job = Job::blank(record.id);
    job.queue = record.queue.to_string();
    job.task = record.task.to_string();
    job.partition = Some(record.partition.clone()).filter(|partition| !partition.is_empty());
    job.state = record.state;
    job.priority = record.priority;
    job.runs = record.runs;
    job.failures = record.failures;
    job.deferrals = record.deferrals;
    job.losses = record.losses;
    job.last_error = record.last_error.clone();
    job.progress = record.chronicle.progress_of(record.runs);
    job.cancel_requested = record.cancel != Cancel::No;
    job.enqueued_at = record.enqueued_at.into();
    job.due_at = record.due_at.into();
    job.expires_at = record.expires_at.map(Into::into);
    job.started_at = record.started_at.map(Into::into);
    job.ended_at = record.ended_at.map(Into::into);
    job
}

/// How a job has ended, if it has.
pub(super) fn stored(record: &Record) -> Option<Stored> {
    if !record.state.is_ended() {
        return None;
    }
    if let Some(value) = &record.value {
        return Some(Stored::Value(value.clone()));
    }
    let mut failure = JobFailure::blank(record.id);
    failure.task = record.task.to_string();
    failure.state = record.state;
    failure.failures = record.failures;
    failure.deferrals = record.deferrals;
    failure.losses = record.losses;
    failure.last_error = record.last_error.clone();
    Some(Stored::Failure(failure))
}

pub(super) fn counts(world: &World) -> Counts {
    let mut tasks: BTreeMap<(&str, &str), TaskCounts> = BTreeMap::new();
    for record in world.jobs.values() {
        let counts = tasks.entry((&record.queue, &record.task)).or_default();
        counts.queue = record.queue.to_string();
        counts.task = record.task.to_string();
        *match record.state {
            State::Scheduled(_) => &mut counts.scheduled,
            State::Ready => &mut counts.ready,
            State::Running => &mut counts.running,
            State::Succeeded => &mut counts.succeeded,
            State::Dead(_) => &mut counts.dead,
            State::Cancelled => &mut counts.cancelled,
            State::Expired => &mut counts.expired,
            other => unreachable!("a state of a later version: {other}"),
        } += 1;
    }
    Counts { tasks: tasks.into_values().collect() }
}
