//! enqueue: a job of a task by its name.

use std::io::Read;

use serde_json::{Value, json};

use super::args::Call;
use super::failure::Failure;
use super::report::Report;
use crate::queue::Queue;

/// No store takes longer arguments from here.
const LONGEST: u64 = 1024 * 1024;

pub(super) async fn enqueue(queue: &Queue, call: Call) -> Result<Report, Failure> {
    let arguments = arguments(&call.arguments)?;
    let mut job = queue.enqueue_by_name(call.task, arguments);
    if let Some(delay) = call.delay {
        job = job.delay(delay);
    }
    if let Some(priority) = call.priority {
        job = job.priority(priority);
    }
    if let Some(queue) = call.queue {
        job = job.queue(queue);
    }
    if let Some(id) = call.id {
        job = job.id(id);
    }
    if let Some(partition) = call.partition {
        job = job.partition(partition);
    }
    if let Some(key) = call.unique_key {
        job = job.unique_key(&key);
    }
    if let Some(expires) = call.expires {
        job = job.expires(expires);
    }
    if let Some(timeout) = call.timeout {
        job = job.timeout(timeout);
    }
    if let Some(max_retries) = call.max_retries {
        job = job.max_retries(max_retries);
    }
    if let Some(result_ttl) = call.result_ttl {
        job = job.result_ttl(result_ttl);
    }
    if let Some(wait) = call.wait {
        job = job.or_wait(wait);
    }
    let stored = job.await?;
    let id = stored.id().to_string();
    Ok(Report::new(id.clone(), json!({ "id": id, "is_duplicate": stored.is_duplicate() })))
}

/// The arguments that were written, or that the standard input holds.
fn arguments(text: &str) -> Result<Value, Failure> {
    let mut read = String::new();
    let text = if text == "-" {
        let unreadable = |error| Failure::Failed(format!("the standard input cannot be read: {error}"));
        std::io::stdin().take(LONGEST + 1).read_to_string(&mut read).map_err(unreadable)?;
        if read.len() as u64 > LONGEST {
            return Err(Failure::Failed(format!("the arguments have more than {LONGEST} bytes")));
        }
        &read
    } else {
        text
    };
    // The place of the mistake alone: the message of the parser may hold a part of the arguments.
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Failure::Usage(format!(
            "the arguments are no JSON (line {line}, column {column}): write an object keyed by parameter, such as \
             '{{\"month\":\"2026-10\"}}'"
        ))
    })
}
