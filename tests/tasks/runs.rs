//! A payload becomes a call: decoded, given its states, its error understood.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use flexiq::__private::Outcome;
use flexiq::internals::States;
use flexiq::internals::{After, Due, Value};
use flexiq::{Context, Retry};

use crate::run;

#[derive(Clone)]
struct Renderer(Arc<str>);

#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error(transparent)]
    Job(#[from] Retry),
    #[error("render: {0}")]
    Render(#[from] std::num::ParseIntError),
}

#[flexiq::task]
async fn build_report(
    #[state] renderer: Renderer,
    month: String,
    #[default] pages: Option<u32>,
    #[default = 2 + 1] copies: u32,
    #[context] context: Context,
) -> Result<String, ReportError> {
    if month == "later" {
        return Err(Retry::after(Duration::from_secs(1)).into());
    }
    let month: u32 = month.parse()?;
    Ok(format!("{} {month} {pages:?} {copies} attempt {}", renderer.0, context.attempt()))
}

fn renderer() -> States {
    let mut states = States::default();
    states.insert(Renderer("pdf".into()));
    states
}

async fn build(payload: &str) -> Outcome {
    run(task_build_report().definition(), payload, renderer()).await
}

fn json(text: &str) -> Outcome {
    Outcome::Succeeded(Value::Json(text.into()))
}

#[tokio::test]
async fn a_payload_is_decoded_by_name_with_defaults_and_without_what_nobody_asked_for() {
    let full = r#"{"copies":1,"unknown":[{}],"month":"10","pages":7}"#;
    assert_eq!(build(full).await, json(r#""pdf 10 Some(7) 1 attempt 1""#));
    assert_eq!(build(r#"{"month":"10"}"#).await, json(r#""pdf 10 None 3 attempt 1""#));
}

#[tokio::test]
async fn an_error_is_a_failure_and_a_retry_in_it_is_what_it_asks_for() {
    let error = "render: invalid digit found in string".to_owned();
    assert_eq!(build(r#"{"month":"May"}"#).await, Outcome::Failed { error, after: After::Backoff });
    let due = Due::In(Duration::from_secs(1));
    assert_eq!(build(r#"{"month":"later"}"#).await, Outcome::Deferred(due));
}

#[tokio::test]
async fn a_payload_that_does_not_fit_names_the_parameter_and_hides_the_value() {
    for (payload, expected) in [
        (
            r#"{"month":4711}"#,
            "parameter month of task build_report: invalid type: integer, expected a string",
        ),
        (r#"{"copies":1}"#, "parameter month of task build_report: the payload does not name it"),
        (r#"{"month":"1","copies":"4711"}"#, "parameter copies of task build_report: invalid type: string"),
        ("[4711]", "the payload of task build_report is no JSON object: invalid type: sequence"),
        (r#"{"month":"#, "the payload of task build_report is no JSON object: EOF"),
    ] {
        let Outcome::Undecodable { error } = build(payload).await else { panic!("{payload} fits") };
        assert!(error.starts_with(expected), "{payload}: {error}");
        assert!(!error.contains("4711"), "{error}");
    }
}

#[flexiq::task]
fn log_in(#[secret] password: u32) {
    let _ = password;
}

#[tokio::test]
async fn what_is_wrong_with_a_secret_is_not_said() {
    let Outcome::Undecodable { error } =
        run(task_log_in().definition(), r#"{"password":"hunter2"}"#, States::default()).await
    else {
        panic!("a text is no number")
    };
    assert_eq!(error, "parameter password of task log_in: the value does not fit u32");
    assert!(task_log_in().definition().parameters[0].secret);
}

#[tokio::test]
async fn a_state_that_is_missing_is_named_with_its_type_and_task() {
    let task = task_build_report().definition();
    let missing = "renderer: tasks::runs::Renderer of task build_report";
    assert_eq!(task.missing_states(&States::default()), [missing]);
    assert!(task.missing_states(&renderer()).is_empty());
    let outcome = run(task, r#"{"month":"10"}"#, States::default()).await;
    let error = format!("missing state {missing}");
    assert_eq!(outcome, Outcome::Failed { error, after: After::Never });
}

mod returns {
    use super::*;

    pub(super) type Aliased = Result<u8, String>;

    #[flexiq::task(name = "returns.unit")]
    pub(super) async fn unit() {}

    #[flexiq::task(name = "returns.anyhow")]
    pub(super) fn with_anyhow(fail: bool) -> anyhow::Result<()> {
        if fail { Err(anyhow::anyhow!("inner").context("outer")) } else { Ok(()) }
    }

    #[flexiq::task(name = "returns.boxed")]
    pub(super) async fn boxed() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Err("boxed".into())
    }

    #[flexiq::task(name = "returns.alias")]
    pub(super) async fn alias() -> Aliased {
        Ok(7)
    }

    #[flexiq::task(name = "returns.map")]
    pub(super) fn map() -> Result<HashMap<(u8, u8), u8>, Retry> {
        Ok(HashMap::from([((1, 2), 3)]))
    }
}

#[tokio::test]
async fn every_return_type_becomes_an_outcome() {
    let failed = |error: &str| Outcome::Failed { error: error.into(), after: After::Backoff };
    for (task, payload, expected) in [
        (returns::task_unit(), "{}", Outcome::Succeeded(Value::Unit)),
        (returns::task_with_anyhow(), r#"{"fail":false}"#, Outcome::Succeeded(Value::Unit)),
        (returns::task_with_anyhow(), r#"{"fail":true}"#, failed("outer: inner")),
        (returns::task_boxed(), "{}", failed("boxed")),
        (returns::task_alias(), "{}", json("7")),
    ] {
        assert_eq!(run(task.definition(), payload, States::default()).await, expected, "{task:?}");
    }
    let unencodable = run(returns::task_map().definition(), "{}", States::default()).await;
    assert!(matches!(unencodable, Outcome::Failed { after: After::Never, .. }));
}

#[tokio::test]
async fn the_function_can_be_called_as_it_is_written() {
    let report = build_report(Renderer("pdf".into()), "10".into(), None, 1, Context::for_test()).await;
    assert_eq!(report.expect("a number"), "pdf 10 None 1 attempt 1");
    log_in(1);
}
