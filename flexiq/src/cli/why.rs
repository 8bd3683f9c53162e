//! why: what keeps a job waiting.

use serde_json::{Value, json};

use super::columns::plain;
use super::failure::Failure;
use super::json;
use super::moments::millis;
use super::report::Report;
use crate::job::JobId;
use crate::queue::Queue;

pub(super) async fn why(queue: &Queue, id: JobId) -> Result<Report, Failure> {
    let explanation = queue.explain(id).await?;
    let causes: Vec<Value> = explanation.causes.iter().map(json::cause).collect();
    let json = json!({
        "job": json::job(&explanation.job),
        "at_ms": millis(explanation.at),
        "causes": causes,
        "sentences": explanation.to_string(),
    });
    Ok(Report::new(plain(&explanation.to_string()), json))
}
