#![allow(unused)]

pub struct Failed;

#[flexiq::task]
async fn one() -> Result<(), Failed> {
    Ok(())
}

#[flexiq::task]
async fn two() -> Result<u8, Box<dyn std::error::Error>> {
    Ok(1)
}

fn main() {}
