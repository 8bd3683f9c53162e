//! How often what happens: strategies for steps, weighted by theme.
//!
//! Times are mostly whole seconds, so that moments often fall together.

use std::time::Duration;

use flexiq::internals::{Due, Held, Hold, Lapse, OnDuplicate, Outset, Release, Timestamp, Transition, Value};
use flexiq::{DeadReason, ScheduledReason};
use flexiq_tests::START;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::Union;

use crate::limits;
use crate::named::named;
use crate::say::say;
use crate::schedules::schedules;
use crate::steps::{
    Again, Call, End, History, LEASE, Lease, Named, OneOf, PARTITIONS, QUEUES, Step, TASKS, WORKERS, Wanted,
    secs,
};

/// How often each kind of step happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) enqueue: u32,
    pub(crate) turn: u32,
    pub(crate) odd_turn: u32,
    pub(crate) beat: u32,
    pub(crate) workers: u32,
    pub(crate) hand: u32,
    pub(crate) limit: u32,
    pub(crate) named: u32,
    /// Of a hundred jobs, how many have a unique key.
    pub(crate) unique: u32,
    pub(crate) schedules: u32,
    pub(crate) time: u32,
    pub(crate) clock: u32,
}

/// A history of so many steps at most.
pub(crate) fn history(theme: Theme, most: usize) -> impl Strategy<Value = History> {
    (vec(limits::declaration(theme.limit > 0, theme.schedules > 0), 1..4), vec(step(theme), 1..=most))
        .prop_map(|(births, steps)| History { births, steps })
}

fn step(theme: Theme) -> impl Strategy<Value = Step> {
    let of_kind = [
        (theme.enqueue, enqueue(theme).boxed()),
        (theme.turn, turn(theme).boxed()),
        (theme.odd_turn, odd_turn(theme).boxed()),
        (theme.beat, beat().boxed()),
        (theme.turn.div_ceil(4), tell().boxed()),
        (theme.workers, workers(theme).boxed()),
        (theme.hand, hand().boxed()),
        (theme.limit, limits::turned().prop_map(Step::Limit).boxed()),
        (theme.named, named().boxed()),
        (theme.schedules, schedules().boxed()),
        (theme.time, time().boxed()),
        (theme.clock, clock().boxed()),
    ];
    Union::new_weighted(of_kind.into_iter().filter(|(weight, _)| *weight > 0).collect())
}

fn enqueue(theme: Theme) -> impl Strategy<Value = Step> {
    let with_limits = theme.limit > 0;
    let sizes = prop_oneof![4 => Just(1..=1_usize), 3 => Just(2..=5), 1 => Just(6..=20)];
    let max_pending = if with_limits { option::weighted(0.3, 1..30_u64).boxed() } else { Just(None).boxed() };
    let per_partition =
        if with_limits { option::weighted(0.3, 1..8_u64).boxed() } else { Just(None).boxed() };
    let jobs = (sizes.prop_flat_map(move |sizes| vec(call(theme), sizes)), per_partition).prop_map(
        |(mut jobs, most)| {
            // A task says the same of all its jobs.
            jobs.iter_mut().for_each(|job| job.max_pending_per_partition = most);
            jobs
        },
    );
    (0..QUEUES.len(), jobs, max_pending).prop_map(|(queue, jobs, max_pending)| Step::Enqueue {
        queue,
        jobs,
        max_pending,
    })
}

fn call(theme: Theme) -> impl Strategy<Value = Call> {
    let again = (any::<Index>(), prop::bool::weighted(0.9))
        .prop_map(|(job, is_same_task)| Again { job, is_same_task });
    let identity = (
        option::weighted(0.05, again),
        0..TASKS.len(),
        prop_oneof![3 => Just(PARTITIONS[0]), 2 => select(PARTITIONS[1..].to_vec())],
    );
    let place = (
        prop_oneof![6 => -1..=1_i8, 1 => select(vec![-100, 100])],
        prop_oneof![4 => Just(Due::NOW), 3 => due()],
        option::weighted(0.3, duration()),
    );
    let outset = (
        option::weighted(0.2, duration()),
        option::weighted(0.2, 0..3_u32),
        option::weighted(0.2, duration()),
    )
        .prop_map(|(timeout, max_retries, result_ttl)| Outset { timeout, max_retries, result_ttl });
    let unique = option::weighted(f64::from(theme.unique) / 100.0, one_of());
    (identity, place, select(vec![0, 2, 2, 512, 513]), outset, unique).prop_map(
        |((again, task, partition), (priority, due, expires), bytes, outset, unique)| Call {
            again,
            task,
            partition,
            max_pending_per_partition: None,
            bytes,
            priority,
            due,
            expires,
            outset,
            unique,
        },
    )
}

/// One of few keys, so that they are mostly taken.
fn one_of() -> impl Strategy<Value = OneOf> {
    let release = prop_oneof![
        4 => at_least().prop_map(|at_least| Release::AtEnd { at_least }),
        3 => at_least().prop_map(|at_least| Release::AtStart { at_least }),
        2 => duration().prop_map(Release::After),
    ];
    let on_duplicate = prop_oneof![
        2 => Just(OnDuplicate::Keep),
        1 => Just(OnDuplicate::Replace),
        2 => Just(OnDuplicate::Postpone),
    ];
    (select(vec!["a", "b", "c"]), release, on_duplicate).prop_map(|(key, release, on_duplicate)| OneOf {
        key,
        release,
        on_duplicate,
    })
}

fn at_least() -> impl Strategy<Value = Duration> {
    prop_oneof![2 => Just(Duration::ZERO), 1 => duration()]
}

fn turn(theme: Theme) -> impl Strategy<Value = Step> {
    (0..WORKERS, 0..QUEUES.len(), vec(end(theme), 0..6), option::weighted(0.9, wanted()))
        .prop_map(|(worker, queue, finishes, claim)| Step::Turn { worker, queue, finishes, claim })
}

fn odd_turn(theme: Theme) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..WORKERS, 0..QUEUES.len()).prop_map(|(worker, queue)| Step::TurnAgain { worker, queue }),
        1 => (0..WORKERS, 0..QUEUES.len(), vec(end(theme), 0..3), option::weighted(0.8, wanted())).prop_map(
            |(worker, queue, finishes, claim)| Step::LateTurn { worker, queue, finishes, claim }
        ),
    ]
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let room = || option::weighted(0.9, (0..2_usize, prop_oneof![1 => 0..3_u32, 3 => 3..30_u32], 0..3_u32));
    (vec(prop_oneof![1 => Just(0), 4 => 1..4_u32, 2 => 4..30_u32], 1..3), [room(), room(), room()])
        .prop_map(|(slots, rooms)| Wanted { slots, rooms })
}

fn end(theme: Theme) -> impl Strategy<Value = End> {
    let hold = if theme.limit > 0 { option::weighted(0.1, hold()).boxed() } else { Just(None).boxed() };
    // Half of those who may wait for a named limit do.
    let transition = match theme.named > 0 {
        true => prop_oneof![transition(), due().prop_map(wait_in_line)].boxed(),
        false => transition().boxed(),
    };
    (lease(), transition, hold, option::weighted(0.2, say()))
        .prop_map(|(lease, transition, hold, notes)| End { lease, transition, hold, notes })
}

fn tell() -> impl Strategy<Value = Step> {
    (0..WORKERS, 0..QUEUES.len(), lease(), say()).prop_map(|(worker, queue, lease, say)| Step::Tell {
        worker,
        queue,
        lease,
        say,
    })
}

fn wait_in_line(due: Due) -> Transition {
    Transition::Schedule { reason: ScheduledReason::Limit, due, error: None }
}

pub(crate) fn lease() -> impl Strategy<Value = Lease> {
    prop_oneof![
        12 => any::<Index>().prop_map(Lease::Held),
        2 => any::<Index>().prop_map(Lease::Any),
        1 => (any::<Index>(), 0..4_u32).prop_map(|(lease, run)| Lease::OfRun(lease, run)),
    ]
}

fn hold() -> impl Strategy<Value = Hold> {
    (select(vec![Held::Queue, Held::Task, Held::Partition]), duration())
        .prop_map(|(what, length)| Hold { what, length })
}

fn transition() -> impl Strategy<Value = Transition> {
    let error = || option::weighted(0.7, select(vec!["it broke", "it broke again"]).prop_map(String::from));
    let retry = || prop_oneof![Just(ScheduledReason::Retry), Just(ScheduledReason::Deferral)];
    let reason = select(vec![
        DeadReason::Failures,
        DeadReason::Never,
        DeadReason::Deferrals,
        DeadReason::Losses,
        DeadReason::Decode,
    ]);
    // A success is kept for some time at least: the builders refuse zero.
    prop_oneof![
        3 => (value(), duration()).prop_map(|(value, keep)| Transition::Succeed { value, keep }),
        4 => (retry(), due(), error())
            .prop_map(|(reason, due, error)| Transition::Schedule { reason, due, error }),
        2 => (reason, error()).prop_map(|(reason, error)| Transition::Kill { reason, error }),
        2 => Just(Transition::Release),
        1 => Just(Transition::PutBack),
        1 => Just(Transition::Cancel),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => Just(Value::Unit),
        2 => select(vec![0, 4, 512, 513]).prop_map(|bytes| Value::Json(vec![b'7'; bytes])),
        1 => Just(Value::TooLarge { size: 5_000_000, limit: 1 << 20 }),
    ]
}

fn beat() -> impl Strategy<Value = Step> {
    let leases = prop_oneof![
        6 => Just(Named::All),
        2 => Just(Named::EveryOther),
        2 => Just(Named::None),
        1 => Just(Named::Everyones),
    ];
    let lapse = prop_oneof![3 => Just(Lapse::Loss), 1 => Just(Lapse::Release)];
    (0..WORKERS, leases, lapse).prop_map(|(worker, leases, lapse)| Step::Beat { worker, leases, lapse })
}

fn workers(theme: Theme) -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..WORKERS, limits::declaration(theme.limit > 0, theme.schedules > 0))
            .prop_map(|(worker, declaration)| Step::Register { worker, declaration: Box::new(declaration) }),
        1 => (0..WORKERS).prop_map(|worker| Step::Retire { worker }),
        2 => (0..WORKERS).prop_map(|worker| Step::Crash { worker }),
        1 => Just(Step::Reopen),
    ]
}

fn hand() -> impl Strategy<Value = Step> {
    let read = (
        any::<Index>(),
        option::of(0..QUEUES.len()),
        option::of(0..TASKS.len()),
        option::of(any::<Index>()),
        0..10_usize,
    )
        .prop_map(|(job, queue, task, like, limit)| Step::Read { job, queue, task, like, limit });
    prop_oneof![
        3 => any::<Index>().prop_map(|job| Step::Cancel { job }),
        2 => any::<Index>().prop_map(|job| Step::Retry { job }),
        1 => any::<Index>().prop_map(|job| Step::Delete { job }),
        1 => (0..TASKS.len(), select(PARTITIONS[1..].to_vec()))
            .prop_map(|(task, partition)| Step::CancelPartition { task, partition }),
        1 => read,
    ]
}

fn time() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => duration().prop_map(Step::Advance),
        3 => (any::<Index>(), -1..=1_i64).prop_map(|(moment, off_ms)| Step::Reach { moment, off_ms }),
        3 => (1..6_u32).prop_map(|beats| Step::Pass { beats }),
    ]
}

fn clock() -> impl Strategy<Value = Step> {
    select(vec![-3_600_000, -5_000, -1_000, -1, 1_000, 3_600_000]).prop_map(|ms| Step::JumpBy { ms })
}

/// Short mostly, and up to what retention needs. Whole milliseconds: finer is rounded up where it is stored.
fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => (1..3_u64).prop_map(Duration::from_millis),
        8 => (1..12_u64).prop_map(secs),
        1 => (2..6_u64).prop_map(|starts| Duration::from_millis(1_000_u64.div_ceil(starts))),
        2 => select(vec![LEASE - Duration::from_millis(1), LEASE + Duration::from_millis(1)]),
        1 => select(vec![secs(60), secs(3_600), secs(86_400), secs(86_401), secs(90 * 86_400)]),
    ]
}

fn due() -> impl Strategy<Value = Due> {
    prop_oneof![
        6 => duration().prop_map(Due::In),
        1 => Just(Due::NOW),
        1 => (-5_000..60_000_i64)
            .prop_map(|ms| Due::At(Timestamp::from_millis(START.as_millis() + ms / 500 * 500))),
    ]
}
