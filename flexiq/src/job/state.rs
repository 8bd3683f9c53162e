//! The states of a job, and the reasons that go with two of them.

use std::fmt;

/// Where a job is in its life: `scheduled → ready → running → succeeded | dead | cancelled | expired`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Waiting for its due time, and why.
    Scheduled(ScheduledReason),
    /// Due, and waiting for a worker and its gates.
    Ready,
    /// Leased to a worker.
    Running,
    /// Its run returned `Ok`.
    Succeeded,
    /// Given up, and why.
    Dead(DeadReason),
    /// Cancelled before it could succeed.
    Cancelled,
    /// Not started within its `expires`.
    Expired,
}

impl State {
    /// Whether a job in this state never runs again, unless it is retried by hand.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Dead(_) | Self::Cancelled | Self::Expired)
    }

    /// Whether a job in this state is accepted and not running: scheduled or ready.
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::Scheduled(_) | Self::Ready)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheduled(_) => "scheduled",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Dead(_) => "dead",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        })
    }
}

/// Why a job is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScheduledReason {
    /// It was enqueued with a delay or a time.
    Delay,
    /// A run failed, and the job is tried again.
    Retry,
    /// A run asked for later.
    Deferral,
    /// A named limit was full or spent, and the job stands in its line.
    Limit,
}

/// Why a job is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadReason {
    /// More failures than `max_retries` forgives.
    Failures,
    /// Its task said `Retry::never`.
    Never,
    /// More deferrals than `max_deferrals` forgives.
    Deferrals,
    /// More lost leases than `max_losses` forgives.
    Losses,
    /// Its payload does not fit its task's parameters.
    Decode,
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failures => "failures",
            Self::Never => "never",
            Self::Deferrals => "deferrals",
            Self::Losses => "losses",
            Self::Decode => "decode",
        })
    }
}
