#![allow(unused)]

#[flexiq::task(cron = "* * * *")]
async fn one() {}

#[flexiq::task(cron = "60 * * * *")]
async fn two() {}

#[flexiq::task(cron = "@daily")]
async fn three() {}

#[flexiq::task(cron = "0 0 30 FEB *")]
async fn four() {}

#[flexiq::task(cron = "0 0 30 2 *")]
async fn five() {}

#[flexiq::task(cron = "0 0 * * *", timezone = "Europe/Stokholm", catch_up = "all")]
async fn six() {}

#[flexiq::task(cron = "0 0 * * *", timezone = "CEST")]
async fn seven() {}

#[flexiq::task(cron = "0 0 30-31 2 *")]
async fn eight() {}

fn main() {}
