#![allow(unused)]

#[flexiq::task]
const fn one() {}

#[flexiq::task]
unsafe fn two() {}

#[flexiq::task]
extern "C" fn three() {}

fn main() {}
