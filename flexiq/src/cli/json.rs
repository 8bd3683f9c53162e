//! What programs read: field names that stay as they are; moments in milliseconds since 1970, and `null` for what is not.

use serde_json::{Value, json};

use super::moments::millis;
use crate::job::{Job, ScheduledReason, State};
use crate::policy::Rate;
use crate::store::{Cause, Limits, Origin, Overrides, Scope, Standing, TaskCounts};

pub(super) fn job(job: &Job) -> Value {
    json!({
        "id": job.id.to_string(),
        "queue": job.queue,
        "task": job.task,
        "partition": job.partition,
        "state": job.state.to_string(),
        "reason": reason(job.state),
        "priority": job.priority,
        "runs": job.runs,
        "failures": job.failures,
        "deferrals": job.deferrals,
        "losses": job.losses,
        "last_error": job.last_error,
        "cancel_requested": job.cancel_requested,
        "enqueued_at_ms": millis(job.enqueued_at),
        "due_at_ms": millis(job.due_at),
        "expires_at_ms": job.expires_at.map(millis),
        "started_at_ms": job.started_at.map(millis),
        "ended_at_ms": job.ended_at.map(millis),
    })
}

/// Why a job is in its state, where there are several reasons.
pub(super) fn reason(state: State) -> Option<String> {
    match state {
        State::Scheduled(reason) => Some(scheduled(reason).into()),
        State::Dead(reason) => Some(reason.to_string()),
        _ => None,
    }
}

fn scheduled(reason: ScheduledReason) -> &'static str {
    match reason {
        ScheduledReason::Delay => "delay",
        ScheduledReason::Retry => "retry",
        ScheduledReason::Deferral => "deferral",
        ScheduledReason::Limit => "limit",
    }
}

pub(super) fn counts(counts: &TaskCounts) -> Value {
    json!({
        "scheduled": counts.scheduled,
        "ready": counts.ready,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "dead": counts.dead,
        "cancelled": counts.cancelled,
        "expired": counts.expired,
    })
}

/// What is limited: its kind, and its names.
pub(super) fn scope(scope: &Scope) -> Value {
    match scope {
        Scope::Queue(queue) => json!({ "kind": "queue", "queue": **queue }),
        Scope::Task(task) => json!({ "kind": "task", "task": **task }),
        Scope::EachPartition(task) => json!({ "kind": "each_partition", "task": **task }),
        Scope::Partition(task, partition) => {
            json!({ "kind": "partition", "task": **task, "partition": partition })
        }
    }
}

pub(super) fn standing(standing: &Standing) -> Value {
    let Overrides { max_concurrent, rates: set, max_pending } = &standing.overrides;
    json!({
        "scope": scope(&standing.scope),
        "is_paused": standing.is_paused,
        "holds": limits(&standing.limits()),
        "declared": limits(&standing.declared),
        "set": {
            "max_concurrent": max_concurrent,
            "rates": set.as_deref().map(rates),
            "max_pending": max_pending,
        },
    })
}

fn limits(limits: &Limits) -> Value {
    json!({
        "max_concurrent": limits.max_concurrent,
        "rates": rates(&limits.rates),
        "max_pending": limits.max_pending,
    })
}

pub(super) fn rates(rates: &[Rate]) -> Vec<String> {
    rates.iter().map(Rate::to_string).collect()
}

/// One thing that keeps a job waiting.
pub(super) fn cause(cause: &Cause) -> Value {
    match cause {
        Cause::NotDue { reason, due_at } => {
            json!({ "kind": "not_due", "reason": scheduled(*reason), "due_at_ms": millis(*due_at) })
        }
        Cause::Paused { scope: of } => json!({ "kind": "paused", "scope": scope(of) }),
        Cause::NoWorker { alive, total } => {
            let alive = alive.iter().map(|worker| {
                json!({
                    "worker": worker.worker.to_string(),
                    "label": worker.label,
                    "links_task": worker.links_task,
                    "serves_queue": worker.serves_queue,
                })
            });
            json!({ "kind": "no_worker", "alive": alive.collect::<Vec<_>>(), "total": total })
        }
        Cause::Held { scope: of, until } => {
            json!({ "kind": "held", "scope": scope(of), "until_ms": millis(*until) })
        }
        Cause::Full { scope: of, max_concurrent, origin, running, holders } => {
            let holders = holders.iter().map(|holder| {
                json!({
                    "job": holder.job.to_string(),
                    "worker": holder.worker.to_string(),
                    "started_at_ms": millis(holder.started_at),
                })
            });
            json!({
                "kind": "full",
                "scope": scope(of),
                "max_concurrent": max_concurrent,
                "origin": origin_of(*origin),
                "running": running,
                "holders": holders.collect::<Vec<_>>(),
            })
        }
        Cause::Spent { scope: of, rates: spent, origin, opens_at } => json!({
            "kind": "spent",
            "scope": scope(of),
            "rates": rates(spent),
            "origin": origin_of(*origin),
            "opens_at_ms": millis(*opens_at),
        }),
        Cause::Behind { jobs, outranked } => {
            json!({ "kind": "behind", "jobs": jobs, "outranked": outranked })
        }
    }
}

pub(super) fn origin_of(origin: Origin) -> &'static str {
    match origin {
        Origin::Declared => "declared",
        Origin::Set => "set",
    }
}
