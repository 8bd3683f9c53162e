#![allow(unused)]

#[flexiq::task(partition_by = std::time::Instant::now())]
async fn one(account: u8) {}

#[flexiq::task(unique_by = acount)]
async fn two(account: u8) {}

fn main() {}
