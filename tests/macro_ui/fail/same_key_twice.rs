#![allow(unused)]

#[flexiq::task]
async fn f(month: u8, _month: u8, r#type: u8, _type: u8) {}

fn main() {}
