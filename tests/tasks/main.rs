//! What `#[flexiq::task]` writes down, and how a stored payload becomes a call: seen through the definitions alone,
//! without a store.

mod calls;
mod declared;
mod keys;
mod runs;

use flexiq::__private::{Outcome, TaskDefinition};
use flexiq::Context;
use flexiq::internals::{Call, Input, Running, States};

/// Runs a task on this payload, as a worker would.
async fn run(task: &TaskDefinition, payload: &str, states: States) -> Outcome {
    let input = Input { payload: payload.into(), states, context: Context::for_test(), max_result: 1_000 };
    match (task.run)(input) {
        Running::Async(future) => future.await,
        Running::Plain(call) => call(),
        Running::Refused(outcome) => outcome,
    }
}

/// The payload of a call.
fn payload(call: Call) -> String {
    String::from_utf8(call.finish().expect("it can be encoded")).expect("JSON is UTF-8")
}
