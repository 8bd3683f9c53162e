//! show: all that is known of a job.

use std::time::SystemTime;

use serde_json::{Map, Value};

use super::args::Shown;
use super::columns::plain;
use super::failure::Failure;
use super::jobs::state;
use super::json;
use super::moments::seen_from;
use super::report::Report;
use crate::error::Error;
use crate::job::Job;
use crate::queue::Queue;

pub(super) async fn show(queue: &Queue, wanted: Shown) -> Result<Report, Failure> {
    let job = queue.status(wanted.id).await?;
    let mut json = json::job(&job);
    let mut text = lines(&job);
    if wanted.payload {
        let arguments = arguments(queue, &wanted).await?;
        text += &format!("\nArguments:\n{}\n", plain(&format!("{:#}", Value::Object(arguments.clone()))));
        json["arguments"] = Value::Object(arguments);
    }
    Ok(Report::new(text, json))
}

/// What people are told, a line for each thing that there is.
fn lines(job: &Job) -> String {
    let now = SystemTime::now();
    let moment = |moment: SystemTime| Some(seen_from(now, moment));
    let or_never = |at: Option<SystemTime>| at.and_then(moment);
    let lines = [
        ("Job", Some(job.id.to_string())),
        ("Task", Some(job.task.clone())),
        ("Queue", Some(job.queue.clone())),
        ("Partition", job.partition.clone()),
        ("State", Some(state(job.state))),
        ("Priority", Some(job.priority.to_string())),
        ("Runs", Some(job.runs.to_string())),
        ("Failures", Some(job.failures.to_string())),
        ("Deferrals", Some(job.deferrals.to_string())),
        ("Losses", Some(job.losses.to_string())),
        ("Cancelling", job.cancel_requested.then(|| "its worker has been told to stop".into())),
        ("Enqueued", moment(job.enqueued_at)),
        ("Due", moment(job.due_at)),
        ("Expires", or_never(job.expires_at)),
        ("Started", or_never(job.started_at)),
        ("Ended", or_never(job.ended_at)),
    ];
    let mut text = String::new();
    for (name, value) in lines {
        if let Some(value) = value {
            text += &format!("{:<12}{}\n", format!("{name}:"), plain(&value));
        }
    }
    if let Some(error) = &job.last_error {
        text += "\nLast error:\n";
        for line in plain(error).lines() {
            text += &format!("  {line}\n");
        }
    }
    text
}

async fn arguments(queue: &Queue, wanted: &Shown) -> Result<Map<String, Value>, Failure> {
    match queue.arguments(wanted.id).await {
        Err(Error::Unknown { name, .. }) if wanted.undeclared => {
            debug_assert!(!name.is_empty(), "the task is named");
            Ok(queue.arguments_unmasked(wanted.id).await?)
        }
        Err(Error::Unknown { name, .. }) => Err(Failure::Failed(format!(
            "no worker has declared task {name}, so that nobody knows which arguments are secret; \
             --undeclared shows all of them"
        ))),
        other => Ok(other?),
    }
}
