#![allow(unused)]

#[flexiq::task]
async fn f(#[context] context: std::time::Duration) {}

fn main() {}
