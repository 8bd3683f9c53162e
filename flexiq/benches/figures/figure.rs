//! One figure, and how it is shown.

use std::fmt::Write;

use serde_json::{Value, json};

/// One measured figure.
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The value of what it is compared with.
    pub(crate) yardstick: Option<f64>,
    pub(crate) reach: Reach,
}

/// What a figure has to reach: its ratio to the yardstick, or without one its value.
#[derive(Clone, Copy)]
pub(crate) enum Reach {
    AtLeast(f64),
    AtMost(f64),
    /// It is only told.
    Nothing,
}

impl Figure {
    fn ratio(&self) -> Option<f64> {
        self.yardstick.map(|yardstick| self.value / yardstick)
    }

    fn status(&self) -> &'static str {
        let reached = self.ratio().unwrap_or(self.value);
        let is_reached = match self.reach {
            Reach::AtLeast(least) => reached >= least,
            Reach::AtMost(most) => reached <= most,
            Reach::Nothing => true,
        };
        if is_reached { "ok" } else { "short" }
    }

    fn reach(&self) -> Option<String> {
        match self.reach {
            Reach::AtLeast(least) => Some(format!(">= {}", rounded(least))),
            Reach::AtMost(most) => Some(format!("<= {}", rounded(most))),
            Reach::Nothing => None,
        }
    }
}

/// The middle of some values.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which such a part of all lies.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

/// An array for programs.
pub(crate) fn json(figures: &[Figure]) -> Value {
    figures
        .iter()
        .map(|figure| {
            json!({
                "figure": format!("{} ({})", figure.name, figure.unit),
                "value": rounded(figure.value),
                "yardstick": figure.yardstick.map(rounded),
                "ratio": figure.ratio().map(rounded),
                "reach": figure.reach(),
                "status": figure.status(),
            })
        })
        .collect()
}

/// A table for people.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text = format!(
        "\n{:<58} {:>12} {:>12} {:>7} {:>9}  {}\n",
        "figure", "value", "yardstick", "ratio", "reach", "status"
    );
    for figure in figures {
        let shown = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "–".into(), |value| format!("{value:.digits$}"))
        };
        let digits = if figure.value < 1_000.0 { 3 } else { 0 };
        // A String takes all that is written.
        let _ = writeln!(
            text,
            "{:<58} {:>12} {:>12} {:>7} {:>9}  {}",
            format!("{} ({})", figure.name, figure.unit),
            shown(Some(figure.value), digits),
            shown(figure.yardstick, digits),
            shown(figure.ratio(), 2),
            figure.reach().unwrap_or_else(|| "–".into()),
            figure.status(),
        );
    }
    text
}
