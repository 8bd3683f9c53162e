#![allow(unused)]

#[flexiq::task(rate_limit = "100/x")]
async fn one() {}

#[flexiq::task(rate_limit = "fast")]
async fn two() {}

#[flexiq::task(rate_limit = "0/m")]
async fn three() {}

#[flexiq::task(rate_limit = "10/s, 20/s")]
async fn four() {}

#[flexiq::task(rate_limit = "10/s burst")]
async fn five() {}

fn main() {}
