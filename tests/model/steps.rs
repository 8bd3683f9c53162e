//! What may happen in a history, in the words of the small world it happens in.
//!
//! Steps name jobs, leases and workers by index among those there are, so that any part of a history is a history, and a
//! failing one shrinks well.

use std::time::Duration;

use flexiq::internals::{
    Due, Hold, Lapse, OnDuplicate, Outset, Planning, Release, Transition, Unique, UniqueKey,
};
use proptest::sample::Index;

use crate::limits::{Declaration, Turned, name};
use crate::named::{Given, Wish};
use crate::say::Say;

/// The queues of the small world.
pub(crate) const QUEUES: [&str; 2] = ["mail", "media"];
/// Its tasks; the last is enqueued to any queue.
pub(crate) const TASKS: [&str; 3] = ["send", "resize", "anywhere"];
/// The home of each task.
pub(crate) const HOMES: [&str; 3] = ["mail", "media", "mail"];
/// The partitions of each task; the first is none.
pub(crate) const PARTITIONS: [&str; 3] = ["", "a", "b"];
/// So many workers at once.
pub(crate) const WORKERS: usize = 3;

pub(crate) const LEASE: Duration = secs(10);
pub(crate) const BEAT: Duration = secs(3);

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What happens, one step after the other.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// What workers declare that begin because a step names them, in turn.
    pub(crate) births: Vec<Declaration>,
    pub(crate) steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Enqueue {
        queue: usize,
        jobs: Vec<Call>,
        max_pending: Option<u64>,
    },
    Turn {
        worker: usize,
        queue: usize,
        finishes: Vec<End>,
        claim: Option<Wanted>,
    },
    /// The newest turn of a worker and queue again, as it was.
    TurnAgain {
        worker: usize,
        queue: usize,
    },
    /// A number that was used before, with other words.
    LateTurn {
        worker: usize,
        queue: usize,
        finishes: Vec<End>,
        claim: Option<Wanted>,
    },
    Beat {
        worker: usize,
        leases: Named,
        lapse: Lapse,
    },
    /// A run tells of itself.
    Tell {
        worker: usize,
        queue: usize,
        lease: Lease,
        say: Say,
    },
    /// A run asks for a permit of a named limit.
    Acquire {
        worker: usize,
        queue: usize,
        lease: Lease,
        wish: Wish,
    },
    /// Permits are given back in one step.
    GiveBack(Vec<Given>),
    Register {
        worker: usize,
        declaration: Box<Declaration>,
    },
    Retire {
        worker: usize,
    },
    /// The worker never speaks again.
    Crash {
        worker: usize,
    },
    Cancel {
        job: Index,
    },
    Retry {
        job: Index,
    },
    Delete {
        job: Index,
    },
    CancelPartition {
        task: usize,
        partition: &'static str,
    },
    /// A job and a page of a list are read.
    Read {
        job: Index,
        queue: Option<usize>,
        task: Option<usize>,
        like: Option<Index>,
        limit: usize,
    },
    Limit(Turned),
    /// A schedule is set, taken back or paused.
    Plan {
        queue: usize,
        schedule: &'static str,
        planning: Planning,
    },
    /// The tick of a schedule that somebody was told of; the next is so long after that.
    Tick {
        told: Index,
        next: Duration,
        runs: bool,
        max_pending: Option<u64>,
    },
    Advance(Duration),
    /// Time goes to just before, at or just after a moment at which something is due or expires.
    Reach {
        moment: Index,
        off_ms: i64,
    },
    /// Time passes as a living fleet sees it: with a beat of someone every three seconds.
    Pass {
        beats: u32,
    },
    /// The wall clock is stepped.
    JumpBy {
        ms: i64,
    },
    /// What lasts is closed and opened again.
    Reopen,
}

/// One job of an enqueue.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The id of a job that was enqueued before; else a new one.
    pub(crate) again: Option<Again>,
    pub(crate) task: usize,
    pub(crate) partition: &'static str,
    pub(crate) max_pending_per_partition: Option<u64>,
    pub(crate) bytes: usize,
    pub(crate) priority: i8,
    pub(crate) due: Due,
    pub(crate) expires: Option<Duration>,
    pub(crate) outset: Outset,
    pub(crate) unique: Option<OneOf>,
}

/// By what a call is the only one of its task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneOf {
    pub(crate) key: &'static str,
    pub(crate) release: Release,
    pub(crate) on_duplicate: OnDuplicate,
}

impl OneOf {
    pub(crate) fn of(self, task: &str) -> Unique {
        let key = UniqueKey::by_text(&name(task), self.key);
        Unique { key, release: self.release, on_duplicate: self.on_duplicate }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Again {
    pub(crate) job: Index,
    /// Whether it calls the same task as before.
    pub(crate) is_same_task: bool,
}

/// One run that its worker says has ended.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) lease: Lease,
    pub(crate) transition: Transition,
    pub(crate) hold: Option<Hold>,
    pub(crate) notes: Option<Say>,
}

/// Whose lease.
#[derive(Clone, Debug)]
pub(crate) enum Lease {
    /// One that the worker believes to hold in the queue.
    Held(Index),
    /// One that anybody was ever given.
    Any(Index),
    /// Such a one, of another run.
    OfRun(Index, u32),
}

/// What a claim asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) slots: Vec<u32>,
    /// By task: the slot, how many, and losses forgiven.
    pub(crate) rooms: [Option<(usize, u32, u32)>; 3],
}

/// Which leases a beat names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    All,
    EveryOther,
    None,
    /// Those of every worker.
    Everyones,
}
