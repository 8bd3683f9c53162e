#![allow(unused)]

pub struct Report;

#[flexiq::task]
async fn build() -> Result<Report, String> {
    Ok(Report)
}

fn main() {}
