//! `flexiq::testing` as a user's tests use it: the engine in memory, on a clock that the test moves.

mod asserts;
mod drains;
mod endings;
mod inline;
mod time;

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use flexiq::JobId;
use flexiq::testing::{Drained, End};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// How each run of each job ended, in order.
fn ends(told: &Drained) -> HashMap<JobId, Vec<&End>> {
    let mut ends: HashMap<JobId, Vec<&End>> = HashMap::new();
    told.runs.iter().for_each(|run| ends.entry(run.job).or_default().push(&run.end));
    ends
}

/// When each run ended, counted from a moment.
fn moments(told: &Drained, from: SystemTime) -> Vec<Duration> {
    told.runs.iter().map(|run| run.at.duration_since(from).expect("it ended later")).collect()
}
