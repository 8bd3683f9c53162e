//! What the knobs of a queue, a task and a partition are called, so that a user finds the one that is meant.

use crate::store::{Origin, Scope};

/// What a limit is called where it is declared, and where it is set at runtime.
pub(super) struct Knob {
    declared: &'static str,
    set: &'static str,
}

impl Knob {
    /// What a task may occupy of one worker: an attribute alone.
    pub(super) const IN_FLIGHT: Self =
        Self { declared: "max_in_flight_per_task", set: "max_in_flight_per_task" };

    /// Its name where it is declared.
    pub(super) fn declared(&self) -> &'static str {
        self.declared
    }

    /// Its name with where its value comes from.
    pub(super) fn named(&self, origin: Origin) -> String {
        match origin {
            Origin::Declared => format!("{} (declared)", self.declared),
            Origin::Set => format!("{} (set at runtime)", self.set),
        }
    }
}

/// The knobs of a scope, as users write them.
pub(super) struct Knobs {
    pub(super) cap: Knob,
    pub(super) rate: Knob,
    pub(super) pending: Knob,
    /// What ends a pause or a hold.
    pub(super) resume: &'static str,
}

impl Knobs {
    pub(super) const fn of(scope: &Scope) -> Self {
        match scope {
            Scope::Queue(_) => Self {
                cap: Knob { declared: "queue_concurrency", set: "set_queue_concurrency" },
                rate: Knob { declared: "queue_rate_limit", set: "set_queue_rate_limit" },
                pending: Knob { declared: "max_pending", set: "set_queue_max_pending" },
                resume: "resume_queue",
            },
            Scope::Task(_) => Self {
                cap: Knob { declared: "max_concurrent", set: "set_task_concurrency" },
                rate: Knob { declared: "rate_limit", set: "set_task_rate_limit" },
                // A task has none.
                pending: Knob { declared: "max_pending", set: "max_pending" },
                resume: "resume_task",
            },
            Scope::EachPartition(_) | Scope::Partition(..) => Self {
                cap: Knob { declared: "max_concurrent_per_partition", set: "set_partition_concurrency" },
                rate: Knob { declared: "rate_limit_per_partition", set: "set_partition_rate_limit" },
                pending: Knob { declared: "max_pending_per_partition", set: "max_pending_per_partition" },
                resume: "resume_partition",
            },
        }
    }
}
