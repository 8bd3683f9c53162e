//! Values are read through raw strings, suffixes and parentheses.
#![deny(warnings)]

#[flexiq::task(queue = r"reports", rate_limit = r#"10/s"#, max_retries = 3u32, priority = (-5), timeout = ("30s"),)]
async fn f() {}

fn main() {
    assert_eq!(task_f().definition().priority, -5);
    assert_eq!(task_f().definition().budgets.max_retries, 3);
}
