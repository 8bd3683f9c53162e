#![allow(unused)]

#[flexiq::task(retry_backoff = "5s")]
async fn one() {}

#[flexiq::task(retry_backoff = "10m..1s")]
async fn two() {}

#[flexiq::task(retry_backoff = "fixed 5")]
async fn three() {}

#[flexiq::task(retry_backoff = "0s..1m")]
async fn four() {}

fn main() {}
