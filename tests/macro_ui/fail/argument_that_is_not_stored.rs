#![allow(unused)]

#[flexiq::task]
fn wait(more: bool, moment: std::time::Instant) {}

fn main() {}
