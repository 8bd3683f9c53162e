#![allow(unused)]

#[flexiq::task]
async fn one<T: serde::Serialize>(value: T) {}

#[flexiq::task]
async fn two<'a>(value: u8) {}

#[flexiq::task]
async fn three(value: u8)
where
    u8: Copy,
{
}

fn main() {
    let _ = enqueue_two;
    let _ = enqueue_three;
}
