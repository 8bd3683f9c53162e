#![allow(unused)]
#![deny(unused_must_use)]

#[flexiq::task]
async fn build(month: String) {}

fn call(queue: &flexiq::Queue) {
    enqueue_build(queue, "10".into());
}

fn main() {}
