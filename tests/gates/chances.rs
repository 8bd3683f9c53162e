//! How often what happens: strategies for steps, weighted by theme.
//!
//! Times are mostly whole seconds, so that moments often fall together; limits are narrow, so that jobs wait for them.

use std::time::Duration;

use flexiq::internals::{Change, Held, Hold, Limits, Rate, Scope};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use proptest::strategy::Union;

use crate::steps::{Declaration, End, History, How, PARTITIONS, QUEUES, Step, TASKS, WORKERS, Wanted, name};

/// Steps of a history at most.
const MOST_STEPS: usize = 60;

/// How often each kind of step happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) enqueue: u32,
    pub(crate) turn: u32,
    pub(crate) set: u32,
    pub(crate) declare: u32,
    pub(crate) time: u32,
    pub(crate) crash: u32,
    pub(crate) hand: u32,
}

pub(crate) fn history(theme: Theme) -> impl Strategy<Value = History> {
    (declaration(), vec(step(theme), 1..=MOST_STEPS))
        .prop_map(|(declaration, steps)| History { declaration, steps })
}

fn step(theme: Theme) -> impl Strategy<Value = Step> {
    let set = (scope(), change()).prop_map(|(scope, change)| Step::Set { scope, change });
    let declare = declaration().prop_map(|declaration| Step::Declare(Box::new(declaration)));
    let hand = prop_oneof![
        any::<Index>().prop_map(|job| Step::Cancel { job }),
        any::<Index>().prop_map(|job| Step::Retry { job }),
    ];
    let of_kind = [
        (theme.enqueue, enqueue().boxed()),
        (theme.turn, turn().boxed()),
        (theme.set, set.boxed()),
        (theme.declare, declare.boxed()),
        (theme.time, time().boxed()),
        (theme.crash, (0..WORKERS).prop_map(|worker| Step::Crash { worker }).boxed()),
        (theme.hand, hand.boxed()),
    ];
    Union::new_weighted(of_kind.into_iter().filter(|(weight, _)| *weight > 0).collect())
}

fn enqueue() -> impl Strategy<Value = Step> {
    let of = (0..TASKS.len(), select(PARTITIONS.to_vec()));
    let after = prop_oneof![3 => Just(Duration::ZERO), 1 => wait()];
    (of, 1..=8_usize, -1..=1_i8, after).prop_map(|((task, partition), jobs, priority, after)| Step::Enqueue {
        task,
        partition,
        jobs,
        priority,
        after,
    })
}

fn turn() -> impl Strategy<Value = Step> {
    let room = || option::weighted(0.9, (0..2_usize, prop_oneof![1 => 0..3_u32, 3 => 3..30_u32]));
    let slots = || prop_oneof![1 => Just(0), 3 => 1..4_u32, 2 => 4..30_u32];
    let wanted =
        ([slots(), slots()], [room(), room(), room()]).prop_map(|(slots, rooms)| Wanted { slots, rooms });
    (0..WORKERS, select(vec![0, 0, 1]), vec(end(), 0..4), option::weighted(0.9, wanted))
        .prop_map(|(worker, queue, ends, room)| Step::Turn { worker, queue, ends, room })
}

fn end() -> impl Strategy<Value = End> {
    let how = prop_oneof![
        4 => Just(How::Succeeds),
        2 => wait().prop_map(How::FailsFor),
        2 => wait().prop_map(How::IsDeferredFor),
        1 => Just(How::IsPutBack),
        1 => Just(How::IsReleased),
        1 => Just(How::Dies),
    ];
    let hold = (select(vec![Held::Queue, Held::Task, Held::Partition]), wait())
        .prop_map(|(what, length)| Hold { what, length });
    (any::<Index>(), how, option::weighted(0.1, hold)).prop_map(|(run, how, hold)| End { run, how, hold })
}

fn scope() -> impl Strategy<Value = Scope> {
    let queue = select(QUEUES.to_vec()).prop_map(|queue| Scope::Queue(name(queue)));
    let task = (0..TASKS.len()).prop_map(|task| Scope::Task(name(TASKS[task].0)));
    let partition = (0..TASKS.len(), select(PARTITIONS[1..].to_vec()))
        .prop_map(|(task, partition)| Scope::Partition(name(TASKS[task].0), partition.into()));
    prop_oneof![1 => queue, 2 => task, 2 => partition]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => option::weighted(0.7, 1..5_u32).prop_map(Change::MaxConcurrent),
        3 => option::weighted(0.7, prop_oneof![1 => Just(vec![]), 4 => rates()]).prop_map(Change::Rates),
        2 => any::<bool>().prop_map(Change::Paused),
    ]
}

fn declaration() -> impl Strategy<Value = Declaration> {
    let one = || {
        let rates = prop_oneof![2 => Just(vec![]), 1 => rates()];
        (option::weighted(0.4, 1..5_u32), rates).prop_map(|(max_concurrent, rates)| Limits {
            max_concurrent,
            rates,
            max_pending: None,
        })
    };
    let tasks = || [one(), one(), one()];
    (tasks(), tasks(), [one(), one()]).prop_map(|(tasks, per_partition, queues)| Declaration {
        tasks,
        per_partition,
        queues,
    })
}

/// One or two windows, each of its own length.
fn rates() -> impl Strategy<Value = Vec<Rate>> {
    let rate = |period| {
        (1..6_u32, prop::bool::weighted(0.25)).prop_map(move |(starts, spread)| Rate {
            starts,
            period,
            spread,
        })
    };
    subsequence([1, 5, 10, 60].map(Duration::from_secs).to_vec(), 1..=2)
        .prop_flat_map(move |periods| periods.into_iter().map(rate).collect::<Vec<_>>())
}

fn time() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => wait().prop_map(Step::Advance),
        2 => (1..5_u32).prop_map(|beats| Step::Pass { beats }),
        1 => Just(Step::Advance(Duration::from_millis(999))),
    ]
}

fn wait() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => (1..400_u64).prop_map(Duration::from_millis),
        4 => (1..7_u64).prop_map(Duration::from_secs),
        1 => select(vec![10, 60]).prop_map(Duration::from_secs),
    ]
}
