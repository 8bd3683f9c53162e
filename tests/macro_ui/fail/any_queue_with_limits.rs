#![allow(unused)]

#[flexiq::task(any_queue, max_concurrent = 1, rate_limit = "1/s", partition_by = a, max_concurrent_per_partition = 1)]
async fn f(a: u8) {}

fn main() {}
