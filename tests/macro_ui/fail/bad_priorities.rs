#![allow(unused)]

#[flexiq::task(priority = 101)]
async fn one() {}

#[flexiq::task(priority = -101)]
async fn two() {}

#[flexiq::task(priority = "high")]
async fn three() {}

fn main() {}
