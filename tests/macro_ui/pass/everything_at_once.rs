//! A crate that is strict with itself holds tasks of every shape.
#![forbid(unsafe_code)]
#![deny(missing_docs, warnings, clippy::all, clippy::pedantic, rustdoc::all)]

use flexiq::{Context, Enqueue, Queue};

/// A report of one month.
#[derive(serde::Serialize, serde::Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The month.
    pub month: String,
}

/// What workers are given.
#[derive(Clone, Debug)]
pub struct Renderer;

/// Renders one monthly report, as [`Report`] has it.
///
/// # Errors
///
/// Never.
#[flexiq::task(queue = "reports", max_concurrent = 2, rate_limit = "100/m")]
pub async fn build_report(
    #[state] _renderer: Renderer,
    month: String,
    #[default] copies: Option<u8>,
    #[default = 3] sheets: u8,
    #[secret] password: String,
    #[context] context: Context,
) -> Result<Report, Box<dyn std::error::Error + Send + Sync>> {
    assert!(context.attempt() == 1 && copies.is_none() && sheets == 3 && !password.is_empty());
    Ok(Report { month })
}

/// Counts, on a thread of its own.
#[flexiq::task]
pub fn count(mut from: u8) {
    from += 1;
    assert!(from > 0);
}

/// Tasks in modules of every visibility.
pub mod inner {
    use super::Report;

    #[flexiq::task]
    pub(crate) async fn part(report: Report) {
        drop(report);
    }

    /// Deeper.
    pub mod deeper {
        #[flexiq::task(name = "deeper.part")]
        pub(in crate::inner) fn part() {}

        #[flexiq::task(name = "deeper.private")]
        fn private() {
            part();
        }
    }
}

fn enqueue_all(queue: &Queue) {
    let report: Enqueue<Report> = enqueue_build_report(queue, "10".into(), None, 3, "secret".into());
    let counted: Enqueue<()> = enqueue_count(queue, 1);
    let part: Enqueue<()> = inner::enqueue_part(queue, Report { month: "10".into() });
    let _ = (report, counted, part);
}

fn main() {
    #[flexiq::task(name = "main.local")]
    async fn local(number: u8) -> Result<u8, String> {
        Ok(number)
    }
    let _ = (local, enqueue_local, task_local, enqueue_all);
    count(1);
}
