#![deny(warnings)]

use std::cell::Cell;

fn send<T: Send + 'static>(_: T) {}

/// What a handle gives need not be `Send` for the call to be.
#[derive(serde::Serialize)]
struct Local(Cell<u8>);

#[flexiq::task]
fn local(a: u8) -> Result<Local, String> {
    Ok(Local(Cell::new(a)))
}

fn call(queue: &flexiq::Queue) {
    send(enqueue_local(queue, 1));
    send(enqueue_local(queue, 1).into_future());
}

fn main() {
    let _ = call;
}
