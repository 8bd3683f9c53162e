#![allow(unused)]

#[flexiq::task("reports")]
async fn one() {}

#[flexiq::task(queue("reports"))]
async fn two() {}

#[flexiq::task(queue =, timeout, any_queue = true)]
async fn three() {}

#[flexiq::task(max_retries = 3 queue = "reports")]
async fn four() {}

#[flexiq::task(crate = "flexiq")]
async fn five() {}

fn main() {}
