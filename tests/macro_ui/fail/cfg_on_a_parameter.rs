#![allow(unused)]

#[flexiq::task]
async fn f(#[cfg(all())] month: u8, #[cfg_attr(all(), default)] year: u8) {}

fn main() {}
