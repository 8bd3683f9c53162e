//! What workers declare, and what is turned at runtime.

use std::time::Duration;

use flexiq::internals::{Change, Limits, Name, Rate, Schedule, Scope};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::schedules::crons;
use crate::steps::{PARTITIONS, QUEUES, TASKS, secs};

/// What a worker declares.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    /// By task; a task that is not linked is not declared.
    pub(crate) tasks: [Option<Limits>; 3],
    /// What holds for each partition of a task, by task.
    pub(crate) per_partition: [Limits; 3],
    /// By task, its cron.
    pub(crate) crons: [Option<Schedule>; 3],
    /// By queue; a queue that is not served is not declared.
    pub(crate) queues: [Option<Limits>; 2],
    /// What tells the declaration in JSON from another.
    pub(crate) version: u8,
}

/// A knob that is turned at runtime.
#[derive(Clone, Debug)]
pub(crate) struct Turned {
    pub(crate) scope: Scope,
    pub(crate) change: Change,
}

pub(crate) fn name(text: &str) -> Name {
    Name::new("test", text).expect("histories use valid names")
}

pub(crate) fn declaration(with_limits: bool, with_crons: bool) -> impl Strategy<Value = Declaration> {
    let limits = move || {
        if with_limits { option::weighted(0.8, limits()).boxed() } else { some_none().boxed() }
    };
    let tasks = [limits(), limits(), limits()];
    let each = move || limits().prop_map(Option::unwrap_or_default);
    let per_partition = [each().boxed(), each().boxed(), Just(Limits::default()).boxed()];
    let crons = if with_crons { crons().boxed() } else { Just([None, None, None]).boxed() };
    (tasks, per_partition, crons, [limits(), limits()], 0..4_u8).prop_map(
        |(mut tasks, per_partition, crons, queues, version)| {
            // A task with any queue has no limits of its own.
            tasks[2] = tasks[2].take().map(|_| Limits::default());
            Declaration { tasks, per_partition, crons, queues, version }
        },
    )
}

fn some_none() -> impl Strategy<Value = Option<Limits>> {
    option::weighted(0.8, Just(Limits::default()))
}

fn limits() -> impl Strategy<Value = Limits> {
    (
        option::weighted(0.4, 1..5_u32),
        prop_oneof![2 => Just(vec![]), 1 => rates()],
        option::weighted(0.2, 1..30_u64),
    )
        .prop_map(|(max_concurrent, rates, max_pending)| Limits { max_concurrent, rates, max_pending })
}

/// One or two windows, each of its own length.
pub(crate) fn rates() -> impl Strategy<Value = Vec<Rate>> {
    let rate = |period: Duration| {
        (1..6_u32, prop::bool::weighted(0.3)).prop_map(move |(starts, spread)| Rate {
            starts,
            period,
            spread,
        })
    };
    let short = select(vec![secs(1), secs(5)]).prop_flat_map(rate);
    let long = select(vec![secs(10), secs(60)]).prop_flat_map(rate);
    prop_oneof![
        vec(short.clone(), 1),
        vec(long.clone(), 1),
        (short, long).prop_map(|(short, long)| vec![short, long]),
    ]
}

pub(crate) fn turned() -> impl Strategy<Value = Turned> {
    let of_queue = select(QUEUES.to_vec()).prop_map(|queue| Scope::Queue(name(queue)));
    let of_task = select(TASKS[..2].to_vec()).prop_map(|task| Scope::Task(name(task)));
    let anywhere = any::<bool>().prop_map(|is_paused| Turned {
        scope: Scope::Task(name(TASKS[2])),
        change: Change::Paused(is_paused),
    });
    let change = || {
        prop_oneof![
            option::weighted(0.7, 1..5_u32).prop_map(Change::MaxConcurrent),
            option::weighted(0.7, rates()).prop_map(Change::Rates),
            any::<bool>().prop_map(Change::Paused),
        ]
    };
    let max_pending = option::weighted(0.7, 1..30_u64).prop_map(Change::MaxPending);
    let of_partition = (select(TASKS[..2].to_vec()), select(PARTITIONS[1..].to_vec()))
        .prop_map(|(task, partition)| Scope::Partition(name(task), partition.into()));
    let of_one = prop_oneof![3 => change().boxed(), 1 => max_pending.clone().boxed()];
    prop_oneof![
        4 => (of_task, change()).prop_map(|(scope, change)| Turned { scope, change }),
        4 => (of_partition, of_one).prop_map(|(scope, change)| Turned { scope, change }),
        4 => (of_queue.clone(), prop_oneof![3 => change().boxed(), 1 => max_pending.boxed()])
            .prop_map(|(scope, change)| Turned { scope, change }),
        1 => anywhere,
    ]
}
