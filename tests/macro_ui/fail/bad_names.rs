#![allow(unused)]

#[flexiq::task(name = "build report", queue = "")]
async fn one() {}

#[flexiq::task]
async fn größe() {}

fn main() {}
