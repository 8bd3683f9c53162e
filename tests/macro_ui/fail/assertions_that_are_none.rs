#![allow(unused)]

use flexiq::testing::{TestQueue, assert_enqueued};

#[flexiq::task]
async fn build_report(month: String, #[state] printer: u8) {}

struct Opaque;

fn check(test: &TestQueue) {
    assert_enqueued!(test, build_report, mnth == "2026-10");
    assert_enqueued!(test, build_report, printer == 1);
    assert_enqueued!(test, build_report, month = "2026-10");
    assert_enqueued!(test, build_report month == "2026-10");
    assert_enqueued!(test, 2 build_report);
    assert_enqueued!(test);
    assert_enqueued!(test, build_rapport);
    assert_enqueued!(test, build_report, month == Opaque);
    assert_enqueued!(test, "2" of build_report);
}

fn main() {}
