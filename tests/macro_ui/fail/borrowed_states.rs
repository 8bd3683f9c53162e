#![allow(unused)]

#[flexiq::task]
async fn borrow(#[state] one: &str, #[state] two: Vec<&String>, #[state] fine: &'static str) {}

fn main() {}
