#![allow(unused)]

#[flexiq::task(max_concurent = 2, Queue = "reports", concurrency = 3, retries = 5, colour = "red")]
async fn f() {}

fn main() {}
