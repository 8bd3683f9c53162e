#![allow(unused)]

#[flexiq::task(unique = "args", unique_by = a)]
async fn one(a: u8) {}

#[flexiq::task(unique_until = "start")]
async fn two(a: u8) {}

#[flexiq::task(unique = "all", unique_until = "end")]
async fn three(a: u8) {}

fn main() {}
