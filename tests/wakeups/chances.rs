//! How often what happens: strategies for steps, weighted by theme.
//!
//! Times are mostly whole seconds, so that moments often fall together.

use std::time::Duration;

use flexiq::internals::{Change, Held, Hold, Rate, Scope};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use proptest::strategy::Union;

use crate::schedules::schedules;
use crate::steps::{History, How, PARTITIONS, QUEUES, Step, TASKS, Trade, millis, name, secs};

/// Steps of a history at most.
const MOST_STEPS: usize = 30;

/// How often each kind of step happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) enqueue: u32,
    /// Of ten jobs, so many are due later.
    pub(crate) delayed: u32,
    pub(crate) end: u32,
    pub(crate) hand: u32,
    pub(crate) limit: u32,
    pub(crate) time: u32,
    /// Workers give up, look too early, stop, begin, or claim only a part.
    pub(crate) odd: u32,
    pub(crate) settle: u32,
    /// A beat rings for whatever a bell has missed.
    pub(crate) beat: u32,
    pub(crate) schedules: u32,
    /// A connection breaks, where there is one.
    pub(crate) cut: u32,
}

pub(crate) fn history(theme: Theme) -> impl Strategy<Value = History> {
    (vec(trade(), 1..=4), vec((step(theme), prop::bool::weighted(0.7)), 1..=MOST_STEPS))
        .prop_map(|(workers, steps)| History { workers, steps })
}

fn trade() -> impl Strategy<Value = Trade> {
    let links = select(vec![
        [true, true, true],
        [true, true, false],
        [true, true, false],
        [true, false, false],
        [true, false, true],
        [false, true, false],
        [false, false, true],
    ]);
    (
        links,
        1..=4_u32,
        select(vec![1, 9, 9]),
        option::weighted(0.15, 1..=2_u32),
        option::weighted(0.3, 1..=2_u32),
    )
        .prop_map(|(links, slots, of_one_task, cap, cap_of_each)| Trade {
            links,
            slots,
            of_one_task,
            cap,
            cap_of_each,
        })
}

fn step(theme: Theme) -> impl Strategy<Value = Step> {
    let beat = any::<Index>().prop_map(|worker| Step::Beat { worker });
    let cut = (1..=6_u64, any::<bool>()).prop_map(|(after, is_heard)| Step::Cut { after, is_heard });
    let of_kind = [
        (theme.enqueue, enqueue(theme.delayed).boxed()),
        (theme.end, end().boxed()),
        (theme.hand, hand().boxed()),
        (theme.limit, limit().boxed()),
        (theme.time, time().boxed()),
        (theme.odd, odd().boxed()),
        (theme.settle, Just(Step::Settle).boxed()),
        (theme.beat, beat.boxed()),
        (theme.schedules, schedules().boxed()),
        (theme.cut, cut.boxed()),
    ];
    Union::new_weighted(of_kind.into_iter().filter(|(weight, _)| *weight > 0).collect())
}

fn enqueue(delayed: u32) -> impl Strategy<Value = Step> {
    let later = select(vec![secs(1), secs(1), secs(2), secs(5)]);
    let after = prop_oneof![10 - delayed => Just(Duration::ZERO), delayed => later];
    let expires = option::weighted(0.15, select(vec![secs(1), secs(2), secs(5)]));
    let of = (select(vec![0, 0, 1, 1, 2]), partition());
    (of, prop_oneof![3 => Just(1_usize), 2 => 2..=4_usize], after, expires).prop_map(
        |((task, partition), jobs, after, expires)| Step::Enqueue { task, partition, jobs, after, expires },
    )
}

fn partition() -> impl Strategy<Value = &'static str> {
    prop_oneof![1 => Just(PARTITIONS[0]), 1 => select(PARTITIONS[1..].to_vec())]
}

fn hold() -> impl Strategy<Value = Hold> {
    (select(vec![Held::Queue, Held::Task, Held::Partition]), select(vec![secs(0), secs(1), secs(2), secs(5)]))
        .prop_map(|(what, length)| Hold { what, length })
}

fn end() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        4 => Just(How::Succeeds),
        2 => select(vec![secs(0), secs(1), secs(2)]).prop_map(How::RetriesAfter),
        1 => Just(How::IsReleased),
        1 => Just(How::Dies),
        1 => hold().prop_map(How::Holds),
    ];
    prop_oneof![
        1 => (any::<Index>(), any::<Index>(), how, any::<bool>())
            .prop_map(|(worker, run, how, claims)| Step::End { worker, run, how, claims }),
        2 => any::<bool>().prop_map(|claims| Step::EndAll { claims }),
    ]
}

fn hand() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<Index>().prop_map(|job| Step::Cancel { job }),
        any::<Index>().prop_map(|job| Step::Retry { job }),
    ]
}

fn limit() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (scope(), change()).prop_map(|(scope, change)| Step::Limit { scope, change }),
        2 => scope().prop_map(|scope| Step::Clear { scope }),
    ]
}

fn scope() -> impl Strategy<Value = Scope> {
    let task = select(vec![0, 0, 1, 1, 2]).prop_map(|task| Scope::Task(name(TASKS[task].0)));
    let queue = select(vec![0, 0, 1]).prop_map(|queue| Scope::Queue(name(QUEUES[queue])));
    let partition = (select(vec![0, 0, 1, 1, 2]), select(PARTITIONS[1..].to_vec()))
        .prop_map(|(task, partition)| Scope::Partition(name(TASKS[task].0), partition.into()));
    prop_oneof![task, queue, partition]
}

fn change() -> impl Strategy<Value = Change> {
    let rate = |period| {
        (1..=2_u32, prop::bool::weighted(0.3)).prop_map(move |(starts, spread)| Rate {
            starts,
            period,
            spread,
        })
    };
    // Each period once: a rate that is named twice is charged twice.
    let periods = subsequence(vec![secs(1), secs(2), secs(5)], 1..=2);
    let rates = periods.prop_flat_map(move |periods| periods.into_iter().map(rate).collect::<Vec<_>>());
    prop_oneof![
        3 => option::weighted(0.7, 1..=2_u32).prop_map(Change::MaxConcurrent),
        3 => option::weighted(0.8, rates).prop_map(Change::Rates),
        2 => prop::bool::weighted(0.5).prop_map(Change::Paused),
    ]
}

fn time() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => select(vec![1, 500, 999, 1_000, 1_000, 2_000, 5_000]).prop_map(|ms| Step::Advance(millis(ms))),
        1 => (1..=4_u32).prop_map(|beats| Step::Pass { beats }),
    ]
}

fn odd() -> impl Strategy<Value = Step> {
    let worker = any::<Index>;
    let parts = select(vec![[false, true, true], [true, false, true]]);
    prop_oneof![
        4 => worker().prop_map(|worker| Step::Look { worker }),
        2 => worker().prop_map(|worker| Step::GiveUp { worker }),
        2 => worker().prop_map(|worker| Step::Stop { worker }),
        2 => trade().prop_map(Step::Begin),
        4 => (worker(), parts).prop_map(|(worker, tasks)| Step::Claim { worker, tasks }),
    ]
}
