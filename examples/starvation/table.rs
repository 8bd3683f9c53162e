//! The figures for people: a row each, and a bar as long as an email waits.

use std::fmt::Write;

use crate::experiment::Figures;

const LONGEST_BAR: f64 = 40.0;

/// Draws the table.
pub(crate) fn draw(figures: &[Figures]) -> String {
    let longest = figures.iter().map(|figures| figures.email_median_ms).fold(1.0, f64::max);
    let mut text = String::from(
        "\n30 reports of 500 ms, then 20 emails of 10 ms, on 10 slots\n\n\
         variant                  email median      max     total  reports  deferrals  failures\n",
    );
    for row in figures {
        let Figures { variant, email_median_ms, email_max_ms, total_ms, peak_reports, deferrals, failures } =
            row;
        // A String takes all that is written.
        let _ = writeln!(
            text,
            "{variant:<24} {email_median_ms:>9.1} ms {email_max_ms:>5.0} ms {total_ms:>6.0} ms {peak_reports:>8} \
             {deferrals:>10} {failures:>9}"
        );
    }
    text.push_str("\nHow long half of the emails wait at least:\n\n");
    for Figures { variant, email_median_ms, .. } in figures {
        let bar = "█".repeat(((email_median_ms / longest) * LONGEST_BAR).ceil() as usize);
        let _ = writeln!(text, "{variant:<24} {bar} {email_median_ms:.0} ms");
    }
    text
}
