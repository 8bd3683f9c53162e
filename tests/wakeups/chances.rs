//! How often what happens. Times are mostly whole seconds, so that moments often fall together.

use std::time::Duration;

use flexiq::internals::{Change, Rate, Scope};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::steps::{History, How, QUEUES, Step, TASKS, Trade, millis, name, secs};

/// Whether workers beat, which rings for whatever a bell has missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beats {
    Never,
    Sometimes,
}

pub(crate) fn history(beats: Beats) -> impl Strategy<Value = History> {
    (vec(trade(), 1..=4), vec((step(beats), prop::bool::weighted(0.7)), 1..=40))
        .prop_map(|(workers, steps)| History { workers, steps })
}

fn trade() -> impl Strategy<Value = Trade> {
    let links = select(vec![
        [true, true, true],
        [true, true, true],
        [true, true, false],
        [true, false, false],
        [true, false, true],
        [false, true, false],
        [false, false, true],
    ]);
    (links, 1..=3_u32, select(vec![1, 9, 9]), option::weighted(0.15, 1..=2_u32))
        .prop_map(|(links, slots, of_one_task, cap)| Trade { links, slots, of_one_task, cap })
}

fn step(beats: Beats) -> impl Strategy<Value = Step> {
    let worker = any::<Index>;
    let without = prop_oneof![
        14 => enqueue(),
        14 => end(),
        2 => (worker(), any::<[bool; 3]>()).prop_map(|(worker, tasks)| Step::Claim { worker, tasks }),
        2 => any::<Index>().prop_map(|job| Step::Cancel { job }),
        1 => any::<Index>().prop_map(|job| Step::Retry { job }),
        7 => (scope(), change()).prop_map(|(scope, change)| Step::Limit { scope, change }),
        6 => select(vec![1, 500, 999, 1_000, 1_000, 2_000, 5_000]).prop_map(|ms| Step::Advance(millis(ms))),
        2 => (1..=4_u32).prop_map(|beats| Step::Pass { beats }),
        4 => worker().prop_map(|worker| Step::GiveUp { worker }),
        5 => worker().prop_map(|worker| Step::Look { worker }),
        2 => worker().prop_map(|worker| Step::Stop { worker }),
        2 => trade().prop_map(Step::Begin),
        8 => Just(Step::Settle),
    ];
    let beat = worker().prop_map(|worker| Step::Beat { worker });
    match beats {
        Beats::Never => without.boxed(),
        Beats::Sometimes => prop_oneof![35 => without, 1 => beat].boxed(),
    }
}

fn enqueue() -> impl Strategy<Value = Step> {
    let after = prop_oneof![3 => Just(Duration::ZERO), 2 => select(vec![secs(1), secs(1), secs(2), secs(5)])];
    let expires = option::weighted(0.15, select(vec![secs(1), secs(2), secs(5)]));
    (select(vec![0, 0, 1, 2]), prop_oneof![3 => Just(1_usize), 2 => 2..=4_usize], after, expires)
        .prop_map(|(task, jobs, after, expires)| Step::Enqueue { task, jobs, after, expires })
}

fn end() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        4 => Just(How::Succeeds),
        2 => select(vec![secs(0), secs(1), secs(2)]).prop_map(How::RetriesAfter),
        1 => Just(How::IsReleased),
        1 => Just(How::Dies),
    ];
    (any::<Index>(), any::<Index>(), how, any::<bool>()).prop_map(|(worker, run, how, claims)| Step::End {
        worker,
        run,
        how,
        claims,
    })
}

fn scope() -> impl Strategy<Value = Scope> {
    let task = select(TASKS.to_vec()).prop_map(|(task, _)| Scope::Task(name(task)));
    let queue = select(QUEUES.to_vec()).prop_map(|queue| Scope::Queue(name(queue)));
    prop_oneof![task, queue]
}

fn change() -> impl Strategy<Value = Change> {
    let rate = (1..=2_u32, select(vec![secs(1), secs(2), secs(5)]), prop::bool::weighted(0.3))
        .prop_map(|(starts, period, spread)| Rate { starts, period, spread });
    prop_oneof![
        3 => option::weighted(0.6, 1..=2_u32).prop_map(Change::MaxConcurrent),
        3 => option::weighted(0.6, vec(rate, 1..=2)).prop_map(Change::Rates),
        3 => prop::bool::weighted(0.4).prop_map(Change::Paused),
    ]
}
