//! Partitions and unique keys are computed from the stored payload.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    customer: String,
    lines: Vec<u32>,
}

#[flexiq::task(partition_by = order.customer, unique_by = (order.lines.len(), *account % 16))]
fn ship(order: Order, account: u32, note: String) {
    let _ = (order, account, note);
}

#[flexiq::task(partition_by = match region { Some(region) => format!("{region}-{zone}"), None => "none".into() })]
fn move_to(#[default] region: Option<String>, #[default = 7] zone: u8, payload: bool) {
    let _ = (region, zone, payload);
}

#[flexiq::task(partition_by = (payload, task), unique = "args")]
fn shadowed(payload: u8, task: String) {
    let _ = (payload, task);
}

const SHIPMENT: &[u8] = br#"{"order":{"customer":"acme","lines":[1,2]},"account":35}"#;

#[test]
fn a_string_is_a_bare_partition_and_the_rest_is_json() {
    let partition = |task: flexiq::Task, payload: &[u8]| {
        task.definition().partition_key(payload).map_err(|error| error.to_string())
    };
    assert_eq!(partition(task_ship(), SHIPMENT), Ok(Some("acme".into())));
    assert_eq!(partition(task_move_to(), br#"{"region":"eu"}"#), Ok(Some("eu-7".into())));
    assert_eq!(partition(task_move_to(), b"{}"), Ok(Some("none".into())));
    assert_eq!(partition(task_shadowed(), br#"{"payload":1,"task":"a"}"#), Ok(Some(r#"[1,"a"]"#.into())));
}

#[test]
fn a_partition_that_is_too_long_or_cannot_be_made_is_refused() {
    let error = |payload: &str| {
        task_ship().definition().partition_key(payload.as_bytes()).expect_err("refused").to_string()
    };
    let long = format!(r#"{{"order":{{"customer":"{}","lines":[]}}}}"#, "x".repeat(201));
    assert_eq!(error(&long), "invalid partition of task ship: one of 201 bytes; accepted: at most 200 bytes");
    assert!(error("{}").starts_with("parameter order of task ship cannot be decoded: the payload does not"));
}

#[test]
fn a_unique_key_does_not_depend_on_the_order_of_fields() {
    let unique = |task: flexiq::Task, payload: &[u8]| task.definition().unique_key(payload).expect("it fits");
    assert_eq!(unique(task_ship(), SHIPMENT).as_deref(), Some("[2,3]"));
    let one = unique(task_shadowed(), br#"{"payload":1,"task":"a"}"#);
    assert_eq!(one.as_deref(), Some(r#"{"payload":1,"task":"a"}"#));
    assert_eq!(unique(task_shadowed(), br#"{ "task": "a", "payload": 1 }"#), one);
    assert_eq!(unique(task_move_to(), b"{}"), None);
}
