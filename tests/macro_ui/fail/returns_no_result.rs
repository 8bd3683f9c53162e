#![allow(unused)]

#[flexiq::task]
async fn one() -> u8 {
    1
}

#[flexiq::task]
async fn two() -> Option<String> {
    None
}

#[flexiq::task]
fn three() -> (u8, u8) {
    (1, 2)
}

#[flexiq::task]
fn four() -> ! {
    panic!()
}

fn main() {}
