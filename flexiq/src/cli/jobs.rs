//! jobs and dead: lists, page by page.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::args::{DeadListed, Listed, PageOf, StateName};
use super::columns::{Columns, Head};
use super::failure::Failure;
use super::json;
use super::moments::seen_from;
use super::report::Report;
use crate::job::{Job, State};
use crate::queue::{JobPage, Queue};

pub(super) async fn list(queue: &Queue, wanted: Listed) -> Result<Report, Failure> {
    let page = read(queue, wanted).await?;
    let now = SystemTime::now();
    let mut columns = Columns::new(&[
        Head::Left("ID"),
        Head::Left("QUEUE"),
        Head::Left("TASK"),
        Head::Left("PARTITION"),
        Head::Left("STATE"),
        Head::Right("PRIORITY"),
        Head::Right("RUNS"),
        Head::Left("SINCE"),
    ]);
    for job in &page.jobs {
        columns.row([
            job.id.to_string(),
            job.queue.clone(),
            job.task.clone(),
            job.partition.clone().unwrap_or_else(|| "-".into()),
            state(job.state),
            job.priority.to_string(),
            job.runs.to_string(),
            since(job, now),
        ]);
    }
    Ok(report(columns, page))
}

pub(super) async fn dead(queue: &Queue, wanted: DeadListed) -> Result<Report, Failure> {
    let DeadListed { queue: of, task, page } = wanted;
    let page = read(queue, Listed { queue: of, task, state: Some(StateName::Dead), page }).await?;
    let now = SystemTime::now();
    let mut columns = Columns::new(&[
        Head::Left("ID"),
        Head::Left("QUEUE"),
        Head::Left("TASK"),
        Head::Left("DIED"),
        Head::Left("OF"),
        Head::Right("RUNS"),
        Head::Left("LAST ERROR"),
    ]);
    for job in &page.jobs {
        columns.row([
            job.id.to_string(),
            job.queue.clone(),
            job.task.clone(),
            since(job, now),
            json::reason(job.state).unwrap_or_default(),
            job.runs.to_string(),
            job.last_error.clone().unwrap_or_else(|| "-".into()),
        ]);
    }
    Ok(report(columns, page))
}

async fn read(queue: &Queue, wanted: Listed) -> Result<JobPage, Failure> {
    let Listed { queue: of, task, state, page: PageOf { limit, after } } = wanted;
    let mut jobs = queue.jobs().limit(limit.into());
    if let Some(of) = of {
        jobs = jobs.queue(of);
    }
    if let Some(task) = task {
        jobs = jobs.task(task);
    }
    if let Some(state) = state {
        jobs = jobs.state(state.into());
    }
    if let Some(after) = after {
        jobs = jobs.after(after);
    }
    Ok(jobs.await?)
}

fn report(columns: Columns, page: JobPage) -> Report {
    let next = page.next.map(|next| next.to_string());
    let mut text = columns.or(if next.is_some() { "no such job so far" } else { "no such job" });
    if let Some(next) = &next {
        text += &format!("There may be more: --after {next}\n");
    }
    let jobs: Vec<Value> = page.jobs.iter().map(json::job).collect();
    Report::new(text, json!({ "jobs": jobs, "next": next }))
}

/// A state, and why it is in it.
pub(super) fn state(state: State) -> String {
    match json::reason(state) {
        Some(reason) => format!("{state} ({reason})"),
        None => state.to_string(),
    }
}

/// Since when, or until when, a job is in its state.
fn since(job: &Job, now: SystemTime) -> String {
    let moment = match job.state {
        State::Running => job.started_at,
        State::Scheduled(_) | State::Ready => Some(job.due_at),
        _ => job.ended_at,
    };
    moment.map_or_else(|| "-".into(), |moment| seen_from(now, moment))
}
