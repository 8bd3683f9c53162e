#![allow(unused)]

pub struct Report;

#[flexiq::task]
async fn build() -> Report {
    Report
}

fn main() {}
