#![allow(unused)]

#[flexiq::task(max_concurrent_per_partition = 1, rate_limit_per_partition = "1/s", max_pending_per_partition = 1)]
async fn f(a: u8) {}

fn main() {}
