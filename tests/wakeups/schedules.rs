//! Schedules of a history: one for each queue. Whoever is told that it is due sends its tick at once, or is lost with it.

use std::time::Duration;

use flexiq::JobId;
use flexiq::internals::{
    CronSchedule, Due, DueTick, Outset, Planning, Schedule, Seen, TOLD_FOR, Tick, Ticked, Timestamp,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestCaseError;

use crate::play::{Play, Played};
use crate::steps::{QUEUES, Step, TASKS, name, secs};

/// The name of each.
const SCHEDULE: &str = "nightly";
/// A tick comes so long after the one before.
const EVERY: Duration = secs(2);

/// What is done to a schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// It is set for a task of its queue.
    Set(Index),
    Removed,
    Paused(bool),
}

pub(crate) fn schedules() -> impl Strategy<Value = Step> {
    let plan = prop_oneof![
        4 => any::<Index>().prop_map(Plan::Set),
        1 => Just(Plan::Removed),
        2 => any::<bool>().prop_map(Plan::Paused),
    ];
    prop_oneof![
        3 => (select(vec![0, 0, 1]), plan).prop_map(|(queue, plan)| Step::Plan { queue, plan }),
        1 => Just(Step::LoseTicks),
    ]
}

/// What is known of the schedules of a history.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Until when nobody else is told of the schedule of a queue.
    until: [Option<Timestamp>; 2],
    /// Whoever is told next is lost.
    pub(crate) is_lost: bool,
}

impl Play {
    pub(crate) async fn plan(&mut self, queue: usize, plan: Plan) {
        let planning = match plan {
            Plan::Set(task) => {
                let tasks: Vec<_> = TASKS.iter().filter(|(_, home)| *home == queue).collect();
                Planning::Set(Box::new(schedule(tasks[task.index(tasks.len())].0)))
            }
            Plan::Removed => Planning::Removed,
            Plan::Paused(is_paused) => Planning::Paused(is_paused),
        };
        let store = self.handle();
        store.schedule(name(QUEUES[queue]), name(SCHEDULE), planning).await.expect("it is planned");
    }

    /// Somebody is told of schedules that are due.
    pub(crate) async fn told(&mut self, ticks: Vec<DueTick>) {
        for due in ticks {
            let queue = QUEUES.iter().position(|queue| *queue == &*due.queue).expect("a queue of this world");
            self.schedules.until[queue] = Some(due.now + TOLD_FOR);
            if std::mem::take(&mut self.schedules.is_lost) {
                continue;
            }
            let job = matches!(due.seen, Seen::Tick(_)).then(|| self.job(0, Due::NOW, None).id);
            self.partitions.extend(job.map(|job: JobId| (job, "")));
            let tick = Tick { next: due.now + EVERY, due, job, max_pending: None };
            let store = self.handle();
            let ticked = store.tick(tick).await.expect("the tick is answered");
            assert_eq!(ticked, Ticked::Done, "nothing comes in between");
            self.schedules.until[queue] = None;
        }
    }

    /// Where somebody waits in a queue, its schedule is not due, unless somebody was just told.
    pub(crate) async fn look_at_schedules(&self) -> Played {
        let store = &self.stand.handles[0];
        let now = self.stand.clock.now();
        for standby in store.schedules().await.expect("the store answers") {
            let (Seen::Since(moment) | Seen::Tick(moment)) = standby.seen;
            let queue = QUEUES.iter().position(|queue| *queue == &*standby.queue);
            let until = self.schedules.until[queue.expect("a queue of this world")];
            let is_due = !standby.is_paused && moment <= now && until.is_none_or(|until| until <= now);
            if is_due && self.workers.iter().any(|worker| worker.waits_in(&standby.queue)) {
                return Err(TestCaseError::fail(format!("nobody is told of {standby:?}")));
            }
        }
        Ok(())
    }
}

fn schedule(task: &str) -> Schedule {
    Schedule {
        cron: CronSchedule { pattern: "*/2 * * * * *".into(), timezone: "UTC".into() },
        catch_up: false,
        task: name(task),
        partition: String::new(),
        max_pending_per_partition: None,
        arguments: "{}".into(),
        priority: 0,
        expires: None,
        outset: Outset::default(),
    }
}
