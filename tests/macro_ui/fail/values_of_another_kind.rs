#![allow(unused)]

const REPORTS: &str = "reports";

#[flexiq::task(queue = REPORTS, timeout = 30, max_retries = "3", max_losses = -1, max_concurrent = 2.5, rate_limit = 100, max_deferrals = 4294967296)]
async fn f() {}

fn main() {}
