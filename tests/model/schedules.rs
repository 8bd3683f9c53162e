//! Schedules of a history: set, taken back, paused, declared; and the ticks of those that somebody was told of.

use std::time::Duration;

use flexiq::JobId;
use flexiq::internals::{CronSchedule, DueTick, Outset, Planning, Schedule, Tick};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::fleet::pick_of;
use crate::limits::name;
use crate::play::{Play, Played};
use crate::steps::{PARTITIONS, QUEUES, Step, TASKS, secs};

/// The schedules of the small world; the last is also the name of a task.
const SCHEDULES: [&str; 2] = ["nightly", TASKS[0]];

/// So many of those that were told last are ticked, more or less late.
const NEWEST: usize = 4;

/// A schedule is set, taken back or paused, or one that was told ticks.
pub(crate) fn schedules() -> impl Strategy<Value = Step> {
    let planning = prop_oneof![
        4 => (0..TASKS.len(), schedule()).prop_map(|(task, mut schedule)| {
            schedule.task = name(TASKS[task]);
            Planning::Set(Box::new(schedule))
        }),
        2 => Just(Planning::Removed),
        2 => any::<bool>().prop_map(Planning::Paused),
    ];
    let next = prop_oneof![6 => (1..12_u64).prop_map(secs), 1 => Just(secs(3_600))];
    prop_oneof![
        2 => (0..QUEUES.len(), select(SCHEDULES.to_vec()), planning)
            .prop_map(|(queue, schedule, planning)| Step::Plan { queue, schedule, planning }),
        5 => (any::<Index>(), next, prop::bool::weighted(0.8), option::weighted(0.2, 0..10_u64))
            .prop_map(|(told, next, runs, max_pending)| Step::Tick { told, next, runs, max_pending }),
    ]
}

/// What a worker declares of its tasks.
pub(crate) fn crons() -> impl Strategy<Value = [Option<Schedule>; 3]> {
    let cron = || option::weighted(0.6, schedule());
    [cron(), cron(), cron()].prop_map(|mut crons| {
        for (cron, task) in crons.iter_mut().zip(TASKS) {
            if let Some(cron) = cron {
                cron.task = name(task);
            }
        }
        crons
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let which = (select(vec!["* * * * *", "*/2 * * * *"]), any::<bool>(), select(PARTITIONS.to_vec()));
    let how = (option::weighted(0.2, 1..3_u64), -1..=1_i8, option::weighted(0.3, (1..12_u64).prop_map(secs)));
    (which, how).prop_map(|((pattern, catch_up, partition), (most, priority, expires))| Schedule {
        cron: CronSchedule { pattern: pattern.into(), timezone: "UTC".into() },
        catch_up,
        task: name(TASKS[0]),
        partition: partition.into(),
        max_pending_per_partition: most,
        arguments: "{}".into(),
        priority,
        expires,
        outset: Outset::default(),
    })
}

impl Play {
    pub(crate) async fn plan(&self, queue: usize, schedule: &str, planning: &Planning) -> Played {
        let (queue, schedule) = (name(QUEUES[queue]), name(schedule));
        let planned = self
            .sides
            .ask("schedule", |store| store.schedule(queue.clone(), schedule.clone(), planning.clone()));
        planned.await.map(drop)
    }

    /// Whoever was told of a schedule sends its tick.
    pub(crate) async fn tick(
        &mut self,
        told: &Index,
        next: Duration,
        runs: bool,
        max_pending: Option<u64>,
    ) -> Played {
        let newest = &self.told[self.told.len().saturating_sub(NEWEST)..];
        let Some(due) = pick_of(newest, told).cloned() else { return Ok(()) };
        let job = runs.then(|| self.next_job(&due));
        let tick = Tick { next: due.now + next, due, job, max_pending };
        self.sides.ask("tick", |store| store.tick(tick.clone())).await.map(drop)
    }

    fn next_job(&mut self, due: &DueTick) -> JobId {
        let task = TASKS.iter().position(|task| *task == due.name.as_str()).unwrap_or(0);
        self.new_job(task)
    }
}
