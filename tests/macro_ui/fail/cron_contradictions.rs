#![allow(unused)]

#[flexiq::task(timezone = "Europe/Stockholm", catch_up = "one")]
async fn one() {}

#[flexiq::task(cron = "0 0 * * *")]
async fn two(#[state] fine: u8, #[default] also: u8, month: String, year: u16) {}

fn main() {}
