#![allow(unused)]

struct Point {
    x: u8,
}

#[flexiq::task]
async fn take((a, b): (u8, u8), Point { x }: Point, _: u8, ref c: u8, __: u8) {}

fn call(queue: &flexiq::Queue) {
    let _ = enqueue_take(queue, (1, 2), Point { x: 3 }, 4, 5, 6);
}

fn main() {}
