#![allow(unused)]

#[flexiq::task(timeout = "30", expires = "1.5h", result_ttl = "3 days")]
async fn one() {}

#[flexiq::task(timeout = "0s", expires = "30m1h", result_ttl = "999999d")]
async fn two() {}

fn main() {}
