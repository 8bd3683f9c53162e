#![deny(warnings)]

#[flexiq::task(cron = "*/5 * * * *")]
async fn every_five_minutes() {}

#[flexiq::task(cron = "0 30 9 * * MON-FRI", timezone = "Europe/Stockholm", catch_up = "one")]
fn work_days(#[default] month: Option<u8>, #[default = 7] copies: u8, #[state] state: u8) {
    let _ = (month, copies, state);
}

#[flexiq::task(cron = "0 0 L 2,4 *", timezone = "UTC", catch_up = "none")]
async fn last_days() {}

fn main() {}
