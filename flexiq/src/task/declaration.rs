//! What a store keeps of a task, so that a producer that does not link its body can still enqueue it by name.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::payload::described;
use super::{TaskDefinition, UniqueUntil};
use crate::error::{Error, Result};
use crate::policy::nearest;

/// A task as a store knows it.
///
/// Written and read by different versions: fields that this version does not know are ignored, and those that an
/// older one did not write have their default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// The stored task name.
    pub name: String,
    /// The task's home queue.
    pub queue: String,
    /// Whether a call may name another queue.
    #[serde(default)]
    pub any_queue: bool,
    /// Its payload parameters, in order.
    #[serde(default)]
    pub parameters: Vec<DeclaredParameter>,
    /// Higher first, from −100 to 100.
    #[serde(default)]
    pub priority: i8,
    /// A job not started within this of its due time is expired.
    #[serde(default)]
    pub expires_ms: Option<u64>,
    /// Whether it has `partition_by`, which only a program that links it can work out.
    #[serde(default)]
    pub partitioned: bool,
    /// Jobs of one partition pending at once.
    #[serde(default)]
    pub max_pending_per_partition: Option<u64>,
    /// Jobs of it in one worker at once.
    #[serde(default)]
    pub max_in_flight_per_task: Option<u32>,
    /// Whether there is at most one job per key.
    #[serde(default)]
    pub unique: Option<DeclaredUnique>,
    /// Arguments whose engine the declaring version did not have.
    #[serde(default)]
    pub not_built: Vec<String>,
}

/// By what calls of a task are the only ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredUnique {
    /// By all arguments; or else by an expression, which only a program that links the task can work out.
    #[serde(default)]
    pub args: bool,
    /// The key is free when the job starts; or else when it ends.
    #[serde(default)]
    pub until_start: bool,
}

/// One payload parameter of a [`Declaration`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredParameter {
    /// Its key in the payload.
    pub name: String,
    /// Whether a payload must name it.
    #[serde(default)]
    pub required: bool,
    /// Whether its value is shown as `•••`.
    #[serde(default)]
    pub secret: bool,
}

impl Declaration {
    /// Checks that a payload names what is required and nothing that is unknown. Types are checked by the worker.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a field that is no parameter, naming the nearest; [`Error::Decode`] for parameters that
    /// are missing, naming all of them.
    pub fn check(&self, payload: &Map<String, Value>) -> Result<()> {
        let names = || self.parameters.iter().map(|parameter| parameter.name.as_str());
        if let Some(unknown) = payload.keys().find(|key| names().all(|name| name != key.as_str())) {
            return Err(Error::Unknown {
                what: "parameter",
                name: unknown.clone(),
                nearest: nearest(unknown, names()).map(str::to_owned),
            });
        }
        let required = self.parameters.iter().filter(|parameter| parameter.required);
        let missing: Vec<&str> = required
            .map(|parameter| parameter.name.as_str())
            .filter(|name| !payload.contains_key(*name))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::Decode {
            what: described(&missing.join(", "), &self.name),
            reason: "the payload does not name it".into(),
        })
    }
}

impl From<&TaskDefinition> for Declaration {
    fn from(task: &TaskDefinition) -> Self {
        let parameters = task.parameters.iter().map(|parameter| DeclaredParameter {
            name: parameter.name.into(),
            required: parameter.required,
            secret: parameter.secret,
        });
        Self {
            name: task.name.into(),
            queue: task.queue.into(),
            any_queue: task.any_queue,
            parameters: parameters.collect(),
            priority: task.priority,
            expires_ms: task.expires.map(|expires| u64::try_from(expires.as_millis()).unwrap_or(u64::MAX)),
            partitioned: task.partition.is_some(),
            max_pending_per_partition: task.partition.and_then(|each| each.max_pending),
            max_in_flight_per_task: task.max_in_flight_per_task,
            unique: task.unique.map(|unique| DeclaredUnique {
                args: unique.key.is_none(),
                until_start: unique.until == UniqueUntil::Start,
            }),
            not_built: task.not_built().into_iter().map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Declaration {
        serde_json::from_value(json!({
            "name": "build_report", "queue": "reports", "color": "written by a later version",
            "parameters": [
                { "name": "month", "required": true, "unit": "later" },
                { "name": "format" },
                { "name": "account", "required": true },
            ],
        }))
        .expect("what is unknown is ignored, what is missing has its default")
    }

    fn refusal(payload: &Value) -> String {
        report().check(payload.as_object().expect("an object")).expect_err("a misfit").to_string()
    }

    #[test]
    fn a_payload_is_checked_by_name() {
        let fits = json!({ "month": "2026-10", "account": 7 });
        report().check(fits.as_object().expect("an object")).expect("it fits");
        assert_eq!(
            refusal(&json!({ "mnoth": 1, "account": 7 })),
            r#"unknown parameter "mnoth"; did you mean "month"?"#
        );
        assert_eq!(
            refusal(&json!({ "format": "pdf" })),
            "parameter month, account of task build_report cannot be decoded: the payload does not name it"
        );
    }

    #[test]
    fn a_declaration_survives_the_store() {
        let json = serde_json::to_string(&report()).expect("plain data");
        assert_eq!(serde_json::from_str::<Declaration>(&json).expect("plain data"), report());
    }
}
