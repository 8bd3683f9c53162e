//! What there is of schedules, and what can be done to them: those that were set, and the crons that workers declare.

use std::time::SystemTime;

use serde_json::Value;

use super::{Answer, JobHandle, Queue, waiting};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::job::JobId;
use crate::policy::{self, Seen};
use crate::store::{self, Origin, Planning, Standby, Store};

/// A schedule as the store shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleStatus {
    /// Its name; of what a task declares, the task's.
    pub name: String,
    /// The queue that its jobs go to.
    pub queue: String,
    /// The task that it calls.
    pub task: String,
    /// Five fields, or six with seconds first.
    pub cron: String,
    /// An IANA name.
    pub timezone: String,
    /// Whether one missed tick is made up for.
    pub catch_up: bool,
    /// Whether a task declares it, or it was set at runtime.
    pub origin: Origin,
    /// When it ticks next; `None` while it is paused or asleep.
    pub next: Option<SystemTime>,
    /// The tick that made a job last.
    pub last: Option<SystemTime>,
    /// The tick that was skipped last, for `max_pending` left no room.
    pub last_skipped: Option<SystemTime>,
    /// Whether it passes over its ticks.
    pub is_paused: bool,
    /// Whether no live worker declares it any more. It does not tick.
    pub is_asleep: bool,
}

impl Queue {
    /// All schedules, sorted by name: those that were set, and the crons that workers declare.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub fn schedules(&self) -> Answer<Vec<ScheduleStatus>> {
        let store = self.store().clone();
        Answer::new(async move { Ok(store.schedules().await?.into_iter().map(status).collect()) })
    }

    /// Lets a schedule pass over its ticks until [`resume_schedule`](Self::resume_schedule), also through deploys.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if there is none of this name, naming the nearest.
    pub fn pause_schedule(&self, name: impl AsRef<str>) -> Answer<()> {
        self.plan(name.as_ref(), Planning::Paused(true))
    }

    /// Lets a schedule tick again, from its next tick on: what it has passed over is not made up for.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if there is none of this name, naming the nearest.
    pub fn resume_schedule(&self, name: impl AsRef<str>) -> Answer<()> {
        self.plan(name.as_ref(), Planning::Paused(false))
    }

    /// Takes back a schedule that was set, or forgets one that no live worker declares any more. Its jobs stay.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if there is none of this name, naming the nearest; [`Error::Invalid`] for what live workers declare:
    /// it ends with the last of them, and can be paused.
    pub fn delete_schedule(&self, name: impl AsRef<str>) -> Answer<()> {
        self.plan(name.as_ref(), Planning::Removed)
    }

    /// Enqueues the call of a schedule once more, now, beside its ticks; also of one that is paused or asleep.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if there is none of this name, naming the nearest; [`Error::QueueFull`] and
    /// [`Error::PartitionFull`], as for any enqueue.
    pub fn run_schedule_now(&self, name: impl AsRef<str>) -> Answer<JobHandle<Value>> {
        let (handle, name) = (self.clone(), name.as_ref().to_owned());
        Answer::new(async move {
            let known = known(&**handle.store(), &name).await?;
            let chosen = known.iter().find(|standby| !standby.is_asleep).or(known.first());
            let Standby { queue, schedule, .. } = chosen.expect("what is known is not empty");
            let batch = store::Enqueue {
                queue: queue.clone(),
                jobs: vec![schedule.job(JobId::new())],
                max_pending: handle.declared_limits(queue).max_pending,
                producer: None,
            };
            let stored = waiting::enqueue(&handle, batch, None).await?;
            let stored = stored.first().copied().expect("a store answers each job of a batch");
            Ok(JobHandle::new(handle.clone(), queue.clone(), stored))
        })
    }

    fn plan(&self, name: &str, planning: Planning) -> Answer<()> {
        let (store, name) = (self.store().clone(), name.to_owned());
        Answer::new(async move {
            let known = known(&*store, &name).await?;
            let is_held = |standby: &Standby| standby.origin == Origin::Declared && !standby.is_asleep;
            if planning == Planning::Removed && known.iter().all(is_held) {
                return Err(Error::Invalid {
                    what: "schedule to delete".into(),
                    given: name,
                    accepted: "one that was set at runtime: this is the cron of a task, which ends with the last worker \
                               that declares it; pause_schedule stops it until then"
                        .into(),
                });
            }
            for standby in known {
                store.schedule(standby.queue, standby.name, planning.clone()).await?;
            }
            Ok(())
        })
    }
}

/// The schedules of a name: mostly one.
async fn known(store: &dyn Store, name: &str) -> Result<Vec<Standby>> {
    let all = store.schedules().await?;
    let (known, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|standby| standby.name.as_str() == name);
    if known.is_empty() {
        let nearest = policy::nearest(name, others.iter().map(|standby| standby.name.as_str()));
        return Err(Error::Unknown {
            what: "schedule",
            name: name.into(),
            nearest: nearest.map(str::to_owned),
        });
    }
    Ok(known)
}

fn status(standby: Standby) -> ScheduleStatus {
    let Standby { schedule, seen, is_paused, is_asleep, .. } = standby;
    let next = match seen {
        _ if is_paused || is_asleep => None,
        Seen::Tick(tick) => Some(tick),
        Seen::Since(moment) => schedule.cron.next_after(moment).ok(),
    };
    let moment = |moment: Option<Timestamp>| moment.map(SystemTime::from);
    ScheduleStatus {
        name: standby.name.to_string(),
        queue: standby.queue.to_string(),
        task: schedule.task.to_string(),
        cron: schedule.cron.pattern,
        timezone: schedule.cron.timezone,
        catch_up: schedule.catch_up,
        origin: standby.origin,
        next: moment(next),
        last: moment(standby.last),
        last_skipped: moment(standby.last_skipped),
        is_paused,
        is_asleep,
    }
}
