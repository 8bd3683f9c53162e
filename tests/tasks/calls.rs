//! A call becomes a payload, and a task is found by name.

use std::collections::HashMap;

use flexiq::__private::{TaskDefinition, argument};
use flexiq::Queue;
use flexiq::internals::{Call, Registry};

use crate::payload;

const EVERYTHING: u32 = line!() + 3;

#[flexiq::task]
async fn everything(
    r#type: String,
    _unused: u8,
    mut list: Vec<Option<f32>>,
    queue: u64,
    call: (),
    input: bool,
) {
    list.clear();
    let _ = (r#type, list, queue, call, input);
}

/// Its arguments and its value have the function's own types.
#[expect(dead_code, reason = "compiling it is the test")]
fn enqueue_is_typed(queue: &Queue, list: Vec<Option<f32>>) -> flexiq::Enqueue<()> {
    enqueue_everything(queue, String::new(), 1_u8, list, 2_u64, (), true)
}

fn definition() -> &'static TaskDefinition {
    task_everything().definition()
}

#[test]
fn a_payload_is_keyed_by_name_without_raw_marks_and_underscores() {
    let names: Vec<_> = definition().parameters.iter().map(|parameter| parameter.name).collect();
    assert_eq!(names, ["type", "unused", "list", "queue", "call", "input"]);
    assert!(definition().parameters.iter().all(|parameter| parameter.required && !parameter.secret));
}

#[flexiq::task]
fn take_map(before: u8, map: HashMap<(u8, u8), u8>, after: u8) {
    let _ = (before, map, after);
}

#[test]
fn the_first_argument_that_cannot_be_encoded_is_named() {
    let mut call = Call::new(task_take_map().definition());
    call.put(&argument("before", true, false), &1_u8);
    call.put(&argument("map", true, false), &HashMap::from([((1_u8, 2_u8), 3_u8)]));
    call.put(&argument("after", true, false), &HashMap::from([([4_u8], 5_u8)]));
    let error = call.finish().expect_err("JSON has no such keys").to_string();
    assert_eq!(error, "parameter map of task take_map cannot be encoded as JSON: key must be a string");
}

#[test]
fn a_call_becomes_one_object() {
    let mut call = Call::new(definition());
    call.put(&argument("a", true, false), &1_u8);
    call.put(&argument("b", true, false), &"c\"d".to_owned());
    assert_eq!(payload(call), r#"{"a":1,"b":"c\"d"}"#);
    assert_eq!(payload(Call::new(definition())), "{}");
}

mod twins {
    pub(super) const ONE: u32 = line!() + 3;

    #[flexiq::task(name = "twin")]
    pub(super) fn one() {}

    pub(super) mod nested {
        #[flexiq::task(name = "twin2")]
        pub(in super::super) fn twin() {}
    }
}

#[test]
fn tasks_are_found_by_name_and_each_counts_once() {
    let tasks = Registry::of([twins::task_one(), twins::nested::task_twin(), twins::task_one()]);
    let tasks = tasks.expect("two names");
    assert_eq!(tasks.iter().map(|task| task.name).collect::<Vec<_>>(), ["twin", "twin2"]);
    assert_eq!(tasks.get("twin").map(|task| task.place.module), Some("tasks::calls::twins"));
    assert!(tasks.get("third").is_none() && !tasks.is_empty());
}

#[test]
fn every_task_of_this_program_is_linked_also_those_in_function_bodies() {
    fn never_called() {
        #[flexiq::task(name = "in_a_body")]
        async fn inner(number: u8) -> Result<u8, String> {
            Ok(number)
        }
        let _ = enqueue_inner;
    }
    let _ = never_called;
    let linked = Registry::linked().expect("no two of one name");
    for name in ["everything", "build_report", "returns.alias", "in_a_body"] {
        assert!(linked.get(name).is_some(), "{name}");
    }
    assert!(linked.get("greet").is_none(), "my_tasks is a dependency that this program never names");
}

#[test]
fn two_tasks_of_one_name_are_refused_naming_both_places() {
    let other = TaskDefinition { name: "everything", ..*twins::task_one().definition() };
    let other: &'static TaskDefinition = Box::leak(Box::new(other));
    let error = Registry::of([task_everything(), flexiq::Task::of(other)]).expect_err("two of one name");
    let text = error.to_string();
    let here = format!("tasks::calls ({}:{EVERYTHING})", file!());
    let there = format!("tasks::calls::twins ({}:{})", file!(), twins::ONE);
    assert!(text.contains(&here) && text.contains(&there), "{text}");
    assert!(text.contains(r#"#[flexiq::task(name = "…")]"#), "{text}");
}
