//! What may happen in a history. Steps name jobs, runs and workers by index among those there are, so that any part of a
//! history is a history, and a failing one shrinks well.

use std::time::Duration;

use flexiq::DeadReason;
use flexiq::internals::{
    Change, Claim, Due, Hold, Limits, Name, Room, ScheduledReason, Scope, Transition, Value,
};
use proptest::sample::Index;

pub(crate) const QUEUES: [&str; 2] = ["mail", "media"];
/// The tasks, and the queue of each.
pub(crate) const TASKS: [(&str, usize); 3] = [("send", 0), ("digest", 0), ("resize", 1)];
/// The partitions; what has none is of "".
pub(crate) const PARTITIONS: [&str; 3] = ["", "a", "b"];
/// So many workers at once.
pub(crate) const WORKERS: usize = 3;

pub(crate) const LEASE: Duration = Duration::from_secs(10);
pub(crate) const BEAT: Duration = Duration::from_secs(3);

pub(crate) fn name(text: &str) -> Name {
    Name::new("test", text).expect("histories use valid names")
}

/// What happens, one step after the other.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// What is declared at first.
    pub(crate) declaration: Declaration,
    pub(crate) steps: Vec<Step>,
}

/// What is declared, as a deploy changes it.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) tasks: [Limits; 3],
    pub(crate) per_partition: [Limits; 3],
    pub(crate) queues: [Limits; 2],
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Enqueue {
        task: usize,
        partition: &'static str,
        jobs: usize,
        priority: i8,
        after: Duration,
    },
    /// Runs of a worker end, and its turn claims, if it wants to.
    Turn {
        worker: usize,
        queue: usize,
        ends: Vec<End>,
        room: Option<Wanted>,
    },
    Set {
        scope: Scope,
        change: Change,
    },
    Declare(Box<Declaration>),
    Advance(Duration),
    /// Time passes with a beat of every worker every three seconds.
    Pass {
        beats: u32,
    },
    /// A worker never speaks again; another comes in its place.
    Crash {
        worker: usize,
    },
    Cancel {
        job: Index,
    },
    Retry {
        job: Index,
    },
}

/// One run that ends.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) run: Index,
    pub(crate) how: How,
    pub(crate) hold: Option<Hold>,
}

/// How it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Succeeds,
    FailsFor(Duration),
    IsDeferredFor(Duration),
    IsPutBack,
    IsReleased,
    Dies,
}

/// What a claim has room for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) slots: [u32; 2],
    /// By task: the slot and how many, unless it is not linked.
    pub(crate) rooms: [Option<(usize, u32)>; 3],
}

impl How {
    /// What its worker says.
    pub(crate) fn transition(self) -> Transition {
        let schedule = |reason, wait| Transition::Schedule { reason, due: Due::In(wait), error: None };
        match self {
            Self::Succeeds => Transition::Succeed { value: Value::Unit, keep: LEASE },
            Self::FailsFor(wait) => schedule(ScheduledReason::Retry, wait),
            Self::IsDeferredFor(wait) => schedule(ScheduledReason::Deferral, wait),
            Self::IsPutBack => Transition::PutBack,
            Self::IsReleased => Transition::Release,
            Self::Dies => Transition::Kill { reason: DeadReason::Never, error: None },
        }
    }
}

impl Wanted {
    pub(crate) fn claim(&self) -> Claim {
        let rooms = TASKS.iter().zip(&self.rooms).filter_map(|((task, _), room)| {
            let (slot, at_most) = (*room)?;
            Some(Room { task: name(task), slot, at_most, max_losses: 3 })
        });
        Claim { slots: self.slots.to_vec(), tasks: rooms.collect(), lease: LEASE }
    }
}
