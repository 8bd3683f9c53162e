#![allow(unused)]

#[flexiq::task]
async fn build(month: String, copies: u8) {}

fn call(queue: &flexiq::Queue) {
    let _ = enqueue_build(queue, 10, 1);
    let _ = enqueue_build(queue, "10".into());
}

fn main() {}
