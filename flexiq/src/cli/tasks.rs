//! tasks: what workers have declared, and so what can be enqueued by name.

use serde_json::{Value, json};

use super::columns::{Columns, Head};
use super::failure::Failure;
use super::report::Report;
use crate::queue::Queue;
use crate::task::{Declaration, DeclaredParameter};

pub(super) async fn list(queue: &Queue) -> Result<Report, Failure> {
    let tasks = queue.declarations().await?;
    let mut columns = Columns::new(&[
        Head::Left("TASK"),
        Head::Left("QUEUE"),
        Head::Left("PARAMETERS"),
        Head::Right("PRIORITY"),
    ]);
    for task in &tasks {
        let parameters: Vec<String> = task.parameters.iter().map(written).collect();
        let home = if task.any_queue { format!("{} (any)", task.queue) } else { task.queue.clone() };
        columns.row([task.name.clone(), home, parameters.join(", "), task.priority.to_string()]);
    }
    let text =
        columns.or("no worker has declared a task: is each crate of tasks linked (use my_tasks as _;)?");
    Ok(Report::new(text, json!({ "tasks": tasks.iter().map(task).collect::<Vec<Value>>() })))
}

/// A parameter as people read it: one with a default in brackets.
fn written(parameter: &DeclaredParameter) -> String {
    let secret = if parameter.secret { " (secret)" } else { "" };
    if parameter.required {
        format!("{}{secret}", parameter.name)
    } else {
        format!("[{}]{secret}", parameter.name)
    }
}

fn task(task: &Declaration) -> Value {
    let parameters = task.parameters.iter().map(|parameter| {
        json!({ "name": parameter.name, "is_required": parameter.required, "is_secret": parameter.secret })
    });
    json!({
        "task": task.name,
        "queue": task.queue,
        "any_queue": task.any_queue,
        "parameters": parameters.collect::<Vec<_>>(),
        "priority": task.priority,
        "expires_ms": task.expires_ms,
        "is_partitioned": task.partitioned,
    })
}
