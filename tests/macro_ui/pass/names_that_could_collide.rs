//! Names that the generated code uses too, and raw ones.
#![deny(warnings)]

use std::rc::Rc as Option;
use std::rc::Rc as Some;

struct Result;
struct Param;
struct Payload;

#[flexiq::task]
async fn run(input: String, payload: u8, call: bool, queue: u16, max_result: u32, value_0: u64) {
    let _ = (input, payload, call, queue, max_result, value_0);
}

#[flexiq::task(partition_by = (payload, task, r#type.len()))]
fn r#loop(payload: u8, task: u8, r#type: String, #[default = payload()] other: u8) {
    let _ = (payload, task, r#type, other);
}

fn payload() -> u8 {
    7
}

#[flexiq::task]
fn task() {}

fn main() {
    let _ = (enqueue_run, enqueue_loop, enqueue_task, task_task(), Result, Param, Payload);
    let _: (Option<u8>, Some<u8>) = (Option::new(1), Some::new(1));
    assert_eq!(task_loop().name(), "loop");
}
