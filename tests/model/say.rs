//! What runs of a history tell of themselves.

use flexiq::Progress;
use flexiq::internals::{Line, Notes, Timestamp};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// What a run tells.
#[derive(Clone, Debug)]
pub(crate) struct Say {
    /// How much is done, and of how much.
    progress: Option<(u64, Option<u64>)>,
    /// The number of the first line, how many there are, and how long each is: some were told before.
    lines: (u32, u32, usize),
}

impl Say {
    pub(crate) fn notes(&self, now: Timestamp) -> Notes {
        let progress = self.progress.map(|(done, total)| Progress::told(done, total, "so far", now));
        let (first, count, bytes) = self.lines;
        let line = |number| Line { number, at: now, message: "x".repeat(bytes) };
        Notes { progress, lines: (first..first + count).map(line).collect() }
    }
}

pub(crate) fn say() -> impl Strategy<Value = Say> {
    let progress = option::of((select(vec![0, 7, u64::MAX]), option::of(0..100_u64)));
    // Whoever says nothing does not speak.
    let lines = prop_oneof![
        2 => (1..5_u32, 1..3_u32, Just(5_usize)),
        1 => (1..5_u32, select(vec![60, 110]), select(vec![0, 100, 1_024])),
    ];
    (progress, lines).prop_map(|(progress, lines)| Say { progress, lines })
}
