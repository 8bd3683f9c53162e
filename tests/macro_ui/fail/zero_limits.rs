#![allow(unused)]

#[flexiq::task(max_concurrent = 0, max_in_flight_per_task = 0, partition_by = a, max_concurrent_per_partition = 0, max_pending_per_partition = 0)]
async fn f(a: u8) {}

fn main() {}
