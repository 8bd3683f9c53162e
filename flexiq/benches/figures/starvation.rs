//! The experiment of `examples/starvation`, against the best that its first makers measured.

use flexiq::JobId;

use crate::experiment::{Figures, Load, Variant, run};
use crate::figure::{Figure, Reach, median};
use crate::redis_server::Server;

/// Their emails' median with separate queues, in milliseconds.
const FIRST_BEST: f64 = 36.0;
/// What is to be reached, in milliseconds.
const REACH: f64 = 25.0;

pub(crate) fn emails() -> flexiq::Result<Vec<Figure>> {
    measured("SQLite", || "sqlite::memory:".into())
}

pub(crate) fn emails_on_redis() -> flexiq::Result<Vec<Figure>> {
    let server = Server::start();
    measured("Redis", || format!("{}?prefix=starvation-{}", server.tcp_url(), JobId::new()))
}

fn measured(place: &str, url: impl Fn() -> String) -> flexiq::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for variant in [Variant::MaxInFlightPerTask, Variant::MaxConcurrent, Variant::SeparateQueues] {
        let mut runs: Vec<Figures> = Vec::new();
        for _ in 0..crate::runs(3) {
            runs.push(crate::runtime().block_on(run(variant, &url(), Load::FULL))?);
        }
        let of = |figure: fn(&Figures) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
        figures.push(Figure {
            name: format!("experiment, email median, {}, {place}", variant.name()),
            value: of(|run| run.email_median_ms),
            unit: "ms",
            yardstick: Some(FIRST_BEST),
            reach: Reach::AtMost(REACH / FIRST_BEST),
        });
        figures.push(Figure {
            name: format!("experiment, total, {}, {place}", variant.name()),
            value: of(|run| run.total_ms),
            unit: "ms",
            yardstick: None,
            reach: Reach::AtMost(5_100.0),
        });
    }
    Ok(figures)
}
