//! What `explain_task` has found, in sentences: a line for the task, one for each knob, and for each queue what waits there
//! and why.

use std::fmt;
use std::time::SystemTime;

use super::explain_task::{KnobSetting, KnobValue, TaskExplanation, TaskInQueue};
use super::knobs::{Knob, Knobs};
use super::sentence::{Of, Sentence, Waiting, list, more, span};
use super::stats::TaskStats;
use crate::store::Origin;

impl fmt::Display for TaskExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, at, home, knobs, partitions_apart, queues } = self;
        match home {
            Some(home) => write!(f, "Task {task} is at home in queue {home}.")?,
            None => write!(f, "Task {task} has not been declared by any worker yet.")?,
        }
        if knobs.is_empty() {
            f.write_str("\n- No knob is turned.")?;
        }
        for knob in knobs {
            write!(f, "\n- {knob}")?;
        }
        match partitions_apart {
            0 => {}
            1 => f.write_str("\n- 1 partition has limits of its own, or is paused.")?,
            many => write!(f, "\n- {many} partitions have limits of their own, or are paused.")?,
        }
        for queue in queues {
            write!(f, "\n{}", InQueue { queue, at: *at })?;
        }
        Ok(())
    }
}

/// A sentence: what holds, where it comes from, and what it stands above.
impl fmt::Display for KnobSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, value, origin, above, declared_by } = self;
        if *value == KnobValue::Paused {
            return write!(f, "{} is paused, until {}.", Of(scope), Knobs::of(scope).resume);
        }
        let knobs = Knobs::of(scope);
        let knob = match value {
            KnobValue::MaxConcurrent(_) => &knobs.cap,
            KnobValue::Rates(_) => &knobs.rate,
            KnobValue::MaxPending(_) => &knobs.pending,
            KnobValue::MaxInFlight(_) | KnobValue::Paused => &Knob::IN_FLIGHT,
        };
        write!(f, "{}: {} allows {value}", Of(scope), knob.named(*origin))?;
        if let Some(above) = above {
            write!(f, ", above {above} of {}", knob.named(Origin::Declared))?;
        }
        match declared_by {
            Some(declarer) => write!(f, ", by worker {declarer}."),
            None if *origin == Origin::Declared || above.is_some() => {
                f.write_str("; nobody who declares it is alive.")
            }
            None => f.write_str("."),
        }
    }
}

impl fmt::Display for KnobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => f.write_str("nothing"),
            Self::MaxConcurrent(jobs) => write!(f, "{jobs} at once"),
            Self::Rates(rates) if rates.is_empty() => f.write_str("any rate"),
            Self::Rates(rates) => f.write_str(&list(rates)),
            Self::MaxPending(jobs) => write!(f, "{jobs} pending"),
            Self::MaxInFlight(jobs) => write!(f, "{jobs} at once in one worker"),
        }
    }
}

/// How a task stands in one queue.
struct InQueue<'a> {
    queue: &'a TaskInQueue,
    at: SystemTime,
}

impl fmt::Display for InQueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskInQueue { stats, causes, taken_by, takers } = self.queue;
        let TaskStats { queue, task, counts, startable, .. } = stats;
        let since = |moment: Option<SystemTime>| {
            moment.map(|moment| format!(", the oldest since {}", span(moment, self.at))).unwrap_or_default()
        };
        write!(
            f,
            "In queue {queue}: {} ready{}; {startable} startable; {} scheduled; {} running{}.",
            counts.ready,
            since(stats.oldest_ready_at),
            counts.scheduled,
            counts.running,
            since(stats.oldest_run_at),
        )?;
        let of = Waiting { queue, task, in_partition: false };
        for cause in causes {
            write!(f, "\n- {}", Sentence { cause, of, at: self.at })?;
        }
        if *takers > 0 {
            let noun = if *takers == 1 { "worker takes" } else { "workers take" };
            write!(f, "\n- {takers} live {noun} it: ")?;
            for (index, worker) in taken_by.iter().enumerate() {
                write!(f, "{}{}", if index > 0 { ", " } else { "" }, worker.label)?;
            }
            more(f, *takers, taken_by.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Declarer;
    use super::*;
    use crate::name::Name;
    use crate::store::{Scope, WorkerId};

    fn knob(value: KnobValue, origin: Origin, above: Option<KnobValue>, is_declared: bool) -> String {
        let declared_by =
            is_declared.then(|| Declarer { worker: WorkerId::from_bytes([3; 16]), label: "a:1".into() });
        let scope = Scope::Task(Name::new("task", "send").expect("tests use valid names"));
        KnobSetting { scope, value, origin, above, declared_by }.to_string()
    }

    #[test]
    fn a_knob_says_its_value_where_it_is_from_and_what_it_stands_above() {
        let worker = WorkerId::from_bytes([3; 16]);
        let cap = KnobValue::MaxConcurrent;
        assert_eq!(
            knob(cap(2), Origin::Declared, None, true),
            format!("Task send: max_concurrent (declared) allows 2 at once, by worker {worker} (a:1).")
        );
        assert_eq!(
            knob(cap(5), Origin::Set, Some(cap(2)), true),
            format!(
                "Task send: set_task_concurrency (set at runtime) allows 5 at once, above 2 at once of \
                 max_concurrent (declared), by worker {worker} (a:1)."
            )
        );
        assert_eq!(
            knob(KnobValue::Rates(vec![]), Origin::Set, None, false),
            "Task send: set_task_rate_limit (set at runtime) allows any rate."
        );
        assert_eq!(
            knob(KnobValue::MaxInFlight(3), Origin::Declared, None, false),
            "Task send: max_in_flight_per_task (declared) allows 3 at once in one worker; nobody who declares it \
             is alive."
        );
        assert_eq!(
            knob(KnobValue::Paused, Origin::Set, None, false),
            "Task send is paused, until resume_task."
        );
    }
}
