//! What may happen in a history. Steps name jobs, runs and workers by index among those there are, so that any part of a
//! history is a history, and a failing one shrinks well.

use std::time::Duration;

use flexiq::internals::{Change, Hold, Name, Scope};
use proptest::sample::Index;

use crate::schedules::Plan;

pub(crate) const QUEUES: [&str; 2] = ["mail", "media"];
/// The tasks, and the queue of each.
pub(crate) const TASKS: [(&str, usize); 3] = [("send", 0), ("digest", 0), ("resize", 1)];

/// The partitions; what has none is of "".
pub(crate) const PARTITIONS: [&str; 3] = ["", "a", "b"];

pub(crate) const LEASE: Duration = secs(10);
pub(crate) const BEAT: Duration = secs(3);

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn name(text: &str) -> Name {
    Name::new("test", text).expect("histories use valid names")
}

/// What happens, one step after the other.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// The workers that sleep when it begins.
    pub(crate) workers: Vec<Trade>,
    /// Each with whether what it tells has arrived before the next.
    pub(crate) steps: Vec<(Step, bool)>,
}

/// What a worker can do.
#[derive(Clone, Debug)]
pub(crate) struct Trade {
    /// The tasks that it links.
    pub(crate) links: [bool; 3],
    pub(crate) slots: u32,
    /// Jobs of one task that it runs at once.
    pub(crate) of_one_task: u32,
    /// The cap that it declares for the tasks that it links.
    pub(crate) cap: Option<u32>,
    /// The one that it declares for each of their partitions.
    pub(crate) cap_of_each: Option<u32>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Enqueue {
        task: usize,
        partition: &'static str,
        jobs: usize,
        after: Duration,
        expires: Option<Duration>,
    },
    /// A run ends. Its worker's turn may claim, too.
    End {
        worker: Index,
        run: Index,
        how: How,
        claims: bool,
    },
    /// All runs end well, each worker's in one turn of each queue, which may claim, too.
    EndAll {
        claims: bool,
    },
    /// A worker claims, and only of some of its tasks: one that was woken, if there is any.
    Claim {
        worker: Index,
        tasks: [bool; 3],
    },
    Cancel {
        job: Index,
    },
    Retry {
        job: Index,
    },
    Limit {
        scope: Scope,
        change: Change,
    },
    /// All that was set for a task or queue is taken back.
    Clear {
        scope: Scope,
    },
    Advance(Duration),
    /// Time passes with a sign of life every three seconds.
    Pass {
        beats: u32,
    },
    /// A worker gives up its wait, whatever was handed to it, and waits anew when everything has settled.
    GiveUp {
        worker: Index,
    },
    /// A worker that was told something takes it in, or goes on with entering a line, and does nothing yet.
    Look {
        worker: Index,
    },
    /// A worker stops, and its leases lapse: one that was woken and has not claimed, if there is any.
    Stop {
        worker: Index,
    },
    /// A worker begins.
    Begin(Trade),
    /// All that is on its way arrives, and every woken worker claims, until all sleep.
    Settle,
    /// A connection breaks at one of the next requests, before the server has heard of it or after.
    Cut {
        after: u64,
        is_heard: bool,
    },
    /// The schedule of a queue is set, taken back or paused.
    Plan {
        queue: usize,
        plan: Plan,
    },
    /// Whoever is told next that a schedule is due is lost with it.
    LoseTicks,
    /// A worker renews its leases, with all that a beat does for the others.
    Beat {
        worker: Index,
    },
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Succeeds,
    RetriesAfter(Duration),
    IsReleased,
    Dies,
    /// Its job goes back, and it holds something so long.
    Holds(Hold),
}
