#![allow(unused)]

struct NotClone;

#[flexiq::task]
async fn draw(month: String, #[state] renderer: Vec<NotClone>) {}

fn main() {}
