//! why: what keeps a job waiting, and how a task stands.

use serde_json::{Value, json};

use super::args::Asked;
use super::columns::plain;
use super::failure::Failure;
use super::moments::millis;
use super::report::Report;
use super::{json, stats};
use crate::job::JobId;
use crate::queue::{KnobSetting, KnobValue, Queue, TaskInQueue};

pub(super) async fn why(queue: &Queue, asked: Asked) -> Result<Report, Failure> {
    match asked {
        Asked { id: Some(id), .. } => job(queue, id).await,
        Asked { task: Some(name), .. } => task(queue, &name).await,
        Asked { .. } => Err(Failure::Usage("name a job by its id, or a task by --task".into())),
    }
}

async fn job(queue: &Queue, id: JobId) -> Result<Report, Failure> {
    let explanation = queue.explain(id).await?;
    let sentences = explanation.to_string();
    let causes: Vec<Value> = explanation.causes.iter().map(json::cause).collect();
    let json = json!({
        "job": json::job(&explanation.job),
        "at_ms": millis(explanation.at),
        "causes": causes,
        "sentences": sentences,
    });
    Ok(Report::new(plain(&sentences), json))
}

async fn task(queue: &Queue, name: &str) -> Result<Report, Failure> {
    let explanation = queue.explain_task(name).await?;
    let sentences = explanation.to_string();
    let json = json!({
        "task": explanation.task,
        "at_ms": millis(explanation.at),
        "home": explanation.home,
        "knobs": explanation.knobs.iter().map(knob).collect::<Vec<_>>(),
        "partitions_apart": explanation.partitions_apart,
        "queues": explanation.queues.iter().map(in_queue).collect::<Vec<_>>(),
        "sentences": sentences,
    });
    Ok(Report::new(plain(&sentences), json))
}

fn knob(knob: &KnobSetting) -> Value {
    let (name, holds) = value(&knob.value);
    json!({
        "scope": json::scope(&knob.scope),
        "knob": name,
        "holds": holds,
        "origin": json::origin_of(knob.origin),
        "declared": knob.above.as_ref().map(|above| value(above).1),
        "declared_by": knob
            .declared_by
            .as_ref()
            .map(|by| json!({ "worker": by.worker.to_string(), "label": by.label })),
    })
}

/// The name of a knob, and its value.
fn value(knob: &KnobValue) -> (&'static str, Value) {
    match knob {
        KnobValue::Paused => ("is_paused", true.into()),
        KnobValue::MaxConcurrent(jobs) => ("max_concurrent", (*jobs).into()),
        KnobValue::Rates(rates) => ("rates", json::rates(rates).into()),
        KnobValue::MaxPending(jobs) => ("max_pending", (*jobs).into()),
        KnobValue::MaxInFlight(jobs) => ("max_in_flight_per_task", (*jobs).into()),
    }
}

fn in_queue(of: &TaskInQueue) -> Value {
    let takers = of.taken_by.iter();
    json!({
        "stats": stats::task(&of.stats),
        "causes": of.causes.iter().map(json::cause).collect::<Vec<_>>(),
        "taken_by": takers
            .map(|worker| json!({ "worker": worker.worker.to_string(), "label": worker.label }))
            .collect::<Vec<_>>(),
        "takers": of.takers,
    })
}
