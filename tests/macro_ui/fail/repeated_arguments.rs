#![allow(unused)]

#[flexiq::task(queue = "a", max_retries = 1, queue = "b", max_retries = 1)]
async fn f() {}

fn main() {}
