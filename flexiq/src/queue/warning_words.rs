//! A warning in words: what is wrong, with the figures that show it, and what to do.

use std::fmt;

use super::explain_task::Declarer;
use super::knobs::Knobs;
use super::sentence::{Of, list, rounded};
use super::warning::Warning;
use crate::store::{Cause, Limits, Scope};

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitTooLow { queue, task, causes, pending, growth_per_hour } => write!(
                f,
                "Task {task} in queue {queue} gets more jobs than may start: {pending} are pending, {growth_per_hour} \
                 more with each hour, behind {}. Raise the limit, or have its producers wait by max_pending.",
                Knobbed(causes)
            ),
            Self::Starved { queue, task, waits, by, held, slots, worker } => write!(
                f,
                "Task {task} in queue {queue} waits longer and longer, {} by now: task {by} holds {held} of {slots} \
                 slots of worker {worker}. Give {by} a max_in_flight_per_task or a max_concurrent, or a queue with \
                 workers of its own.",
                rounded(*waits)
            ),
            Self::DeclarationsDiffer { scope, holds, other } => write!(
                f,
                "{} is declared in two ways: worker {} declares {}, which holds since it is the youngest, and worker {} \
                 declares {}. Deploy one version to all, or set at runtime what shall hold.",
                Of(scope),
                holds.0,
                Declared(scope, &holds.1),
                other.0,
                Declared(scope, &other.1)
            ),
            Self::Stranded { queue, task, jobs, workers } => {
                let (noun, wait) = if *jobs == 1 { ("job", "waits") } else { ("jobs", "wait") };
                write!(
                    f,
                    "{jobs} {noun} of task {task} in queue {queue} {wait} for a worker that does not exist: of {workers} \
                     that live none both links the task and serves the queue. Start one that does; a task that was \
                     renamed keeps its jobs by `name = \"{task}\"`."
                )
            }
            Self::RunTooLong { queue, task, lasts, usual } => write!(
                f,
                "A run of task {task} in queue {queue} has lasted {}, where its runs take {} on average. If it hangs, \
                 cancel its job, and give the task a timeout.",
                rounded(*lasts),
                rounded(*usual)
            ),
        }
    }
}

impl fmt::Display for Declarer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.worker, self.label)
    }
}

/// The knobs that are used up, with their values.
struct Knobbed<'a>(&'a [Cause]);

impl fmt::Display for Knobbed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, cause) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { " and " } else { "" })?;
            match cause {
                Cause::Full { scope, max_concurrent, origin, .. } => {
                    write!(f, "{} {max_concurrent}", Knobs::of(scope).cap.named(*origin))?
                }
                Cause::Spent { scope, rates, origin, .. } => {
                    write!(f, "{} {}", Knobs::of(scope).rate.named(*origin), list(rates))?
                }
                // No other cause is a limit.
                _ => {}
            }
        }
        Ok(())
    }
}

/// Limits as a worker declares them.
struct Declared<'a>(&'a Scope, &'a Limits);

impl fmt::Display for Declared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(scope, Limits { max_concurrent, rates, max_pending }) = self;
        let Knobs { cap, rate, pending, .. } = Knobs::of(scope);
        let parts = [
            max_concurrent.map(|jobs| format!("{} {jobs}", cap.declared())),
            (!rates.is_empty()).then(|| format!("{} {}", rate.declared(), list(rates))),
            max_pending.map(|jobs| format!("{} {jobs}", pending.declared())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { f.write_str("no limit") } else { f.write_str(&parts.join(" and ")) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::name::Name;
    use crate::store::{Origin, WorkerId};

    fn worker(number: u8) -> Declarer {
        Declarer { worker: WorkerId::from_bytes([number; 16]), label: format!("host:{number}") }
    }

    fn task() -> Scope {
        Scope::Task(Name::new("task", "send").expect("tests use valid names"))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_limit_that_is_too_low_is_named_with_how_the_backlog_grows() {
        let spent = Cause::Spent {
            scope: task(),
            rates: vec!["10/m".parse().expect("a rate")],
            origin: Origin::Set,
            opens_at: SystemTime::UNIX_EPOCH,
        };
        let full = Cause::Full {
            scope: task(),
            max_concurrent: 3,
            origin: Origin::Declared,
            running: 3,
            holders: vec![],
        };
        let warning = Warning::LimitTooLow {
            queue: "q".into(),
            task: "send".into(),
            causes: vec![full, spent],
            pending: 900,
            growth_per_hour: 120,
        };
        assert_eq!(
            warning.to_string(),
            "Task send in queue q gets more jobs than may start: 900 are pending, 120 more with each hour, behind \
             max_concurrent (declared) 3 and set_task_rate_limit (set at runtime) 10/m. Raise the limit, or have its \
             producers wait by max_pending."
        );
    }

    #[test]
    fn what_starves_another_is_named_with_the_worker_it_fills() {
        let warning = Warning::Starved {
            queue: "q".into(),
            task: "email".into(),
            waits: seconds(600),
            by: "report".into(),
            held: 9,
            slots: 10,
            worker: worker(3),
        };
        let told = warning.to_string();
        assert!(told.starts_with("Task email in queue q waits longer and longer, 10m by now: "), "{told}");
        assert!(
            told.contains(&format!(
                "task report holds 9 of 10 slots of worker {} (host:3).",
                worker(3).worker
            ))
        );
        assert!(told.ends_with(
            "Give report a max_in_flight_per_task or a max_concurrent, or a queue with workers of its own."
        ));
    }

    #[test]
    fn workers_that_differ_are_both_named_with_what_they_declare() {
        let limits = Limits {
            max_concurrent: Some(2),
            rates: vec!["5/s".parse().expect("a rate")],
            max_pending: None,
        };
        let told = Warning::DeclarationsDiffer {
            scope: task(),
            holds: (worker(4), limits),
            other: (worker(3), Limits::default()),
        }
        .to_string();
        assert!(
            told.contains("(host:4) declares max_concurrent 2 and rate_limit 5/s, which holds"),
            "{told}"
        );
        assert!(told.contains("(host:3) declares no limit."), "{told}");
    }

    #[test]
    fn what_nobody_takes_and_what_does_not_end_is_told_with_its_figures() {
        let (queue, task) = ("q".to_owned(), "send".to_owned());
        let told = Warning::Stranded { queue, task, jobs: 1, workers: 2 }.to_string();
        assert!(told.starts_with(
            "1 job of task send in queue q waits for a worker that does not exist: of 2 that live"
        ));
        let (queue, task) = ("q".to_owned(), "send".to_owned());
        let told =
            Warning::RunTooLong { queue, task, lasts: seconds(90), usual: Duration::from_millis(1_500) };
        assert!(
            told.to_string()
                .starts_with("A run of task send in queue q has lasted 1m30s, where its runs take 1s500ms"),
            "{told}"
        );
    }
}
