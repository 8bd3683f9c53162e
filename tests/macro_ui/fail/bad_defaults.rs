#![allow(unused)]

struct NoDefault;

#[flexiq::task]
async fn one(#[default = "three"] copies: u8) {}

#[flexiq::task]
async fn two(#[default] moment: std::num::NonZeroU8) {}

fn main() {}
