//! Schedules, as a store keeps them: what is to be enqueued, by which cron, and where it stands.
//!
//! A store knows moments and no calendar. It tells a worker that a schedule is due; the worker works out the next tick, and
//! sends it with the step that enqueues the job.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::explanation::Origin;
use super::types::{NewJob, Outset, Payload};
use crate::clock::Timestamp;
use crate::error::Error;
use crate::job::{Due, JobId};
use crate::name::Name;
use crate::policy::{CronSchedule, Seen};

/// No more schedules are set in a queue that has so many.
pub const MOST_SCHEDULES: usize = 1_000;
/// A step tells of so many that are due,
pub const MOST_TOLD: usize = 100;
/// and nobody else is told of one for so long: its worker may have died.
pub const TOLD_FOR: Duration = Duration::from_secs(5);
/// A schedule that no live worker declares any more is kept so long, with the tick that it has reached.
pub const KEPT_ASLEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What is enqueued at each tick. Whatever a task says of its calls was filled in when it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct Schedule {
    /// When it ticks.
    pub cron: CronSchedule,
    /// Whether one missed tick is made up for.
    pub catch_up: bool,
    /// The task.
    pub task: Name,
    /// The partition of its task; empty where the task has none.
    pub partition: String,
    /// The pending jobs of its partition that its task allows.
    pub max_pending_per_partition: Option<u64>,
    /// Its arguments, in JSON.
    pub arguments: String,
    /// Higher first, from −100 to 100.
    pub priority: i8,
    /// How long after its tick a job expires unless it has started.
    pub expires: Option<Duration>,
    /// What its jobs set for themselves.
    pub outset: Outset,
}

impl Schedule {
    /// A job of it that is due now.
    pub fn job(&self, id: JobId) -> NewJob {
        NewJob {
            id,
            is_given: false,
            task: self.task.clone(),
            partition: self.partition.clone(),
            max_pending_per_partition: self.max_pending_per_partition,
            payload: Payload { codec: 0, bytes: self.arguments.clone().into_bytes() },
            priority: self.priority,
            due: Due::NOW,
            expires: self.expires,
            outset: self.outset,
            unique: None,
        }
    }

    /// As a store writes it down.
    pub(crate) fn to_json(&self) -> String {
        let Self { cron, outset, .. } = self.clone();
        let written = Written {
            pattern: cron.pattern,
            timezone: cron.timezone,
            catch_up: self.catch_up,
            task: self.task.to_string(),
            partition: self.partition.clone(),
            max_pending_per_partition: self.max_pending_per_partition,
            arguments: self.arguments.clone(),
            priority: self.priority,
            expires_ms: self.expires.map(millis),
            timeout_ms: outset.timeout.map(millis),
            max_retries: outset.max_retries,
            result_ttl_ms: outset.result_ttl.map(millis),
        };
        serde_json::to_string(&written).expect("it is made of texts and numbers")
    }

    /// What a store has written down; `None` if it was another program.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        let written: Written = serde_json::from_str(text).ok()?;
        Some(Self {
            cron: CronSchedule { pattern: written.pattern, timezone: written.timezone },
            catch_up: written.catch_up,
            task: Name::new("task", written.task).ok()?,
            partition: written.partition,
            max_pending_per_partition: written.max_pending_per_partition,
            arguments: written.arguments,
            priority: written.priority,
            expires: written.expires_ms.map(Duration::from_millis),
            outset: Outset {
                timeout: written.timeout_ms.map(Duration::from_millis),
                max_retries: written.max_retries,
                result_ttl: written.result_ttl_ms.map(Duration::from_millis),
            },
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Schedule {
    // Arguments may hold secrets: they are never shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("cron", &self.cron)
            .field("catch_up", &self.catch_up)
            .field("task", &self.task)
            .field("partition", &self.partition)
            .finish_non_exhaustive()
    }
}

/// A schedule in a store. Written and read by different versions: what this one does not know is ignored.
#[derive(Serialize, Deserialize)]
struct Written {
    pattern: String,
    timezone: String,
    #[serde(default)]
    catch_up: bool,
    task: String,
    #[serde(default)]
    partition: String,
    #[serde(default)]
    max_pending_per_partition: Option<u64>,
    arguments: String,
    #[serde(default)]
    priority: i8,
    #[serde(default)]
    expires_ms: Option<u64>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    max_retries: Option<u32>,
    #[serde(default)]
    result_ttl_ms: Option<u64>,
}

/// What is done to a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planning {
    /// It is made, or replaced. It stands above what workers declare under its name.
    Set(Box<Schedule>),
    /// It is taken back. What workers declare under its name holds again.
    Removed,
    /// Whether it passes over its ticks.
    Paused(bool),
}

/// A schedule, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standby {
    /// The queue that its jobs go to.
    pub queue: Name,
    /// Its name.
    pub name: Name,
    /// What is enqueued.
    pub schedule: Schedule,
    /// Whether workers declare it, or it was set at runtime.
    pub origin: Origin,
    /// Its next tick, as far as that is worked out.
    pub seen: Seen,
    /// The tick that has made a job last.
    pub last: Option<Timestamp>,
    /// The tick that was skipped last, for there was no room in the queue or the partition.
    pub last_skipped: Option<Timestamp>,
    /// Whether it passes over its ticks.
    pub is_paused: bool,
    /// Whether it was declared, and no live worker declares it any more. It does not tick.
    pub is_asleep: bool,
}

/// A schedule that is due, told to whoever works out what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTick {
    /// Its queue.
    pub queue: Name,
    /// Its name.
    pub name: Name,
    /// When it ticks.
    pub cron: CronSchedule,
    /// Whether one missed tick is made up for.
    pub catch_up: bool,
    /// What is due of it.
    pub seen: Seen,
    /// The store's moment.
    pub now: Timestamp,
}

/// What has come of a schedule that was due.
#[derive(Clone, Debug)]
pub struct Tick {
    /// What was told: nothing is done if the schedule shows anything else by now.
    pub due: DueTick,
    /// The tick that comes next.
    pub next: Timestamp,
    /// The id of the job that is enqueued; `None` for no job.
    pub job: Option<JobId>,
    /// The `max_pending` that the caller's handle declares for the queue. An override stands above it.
    pub max_pending: Option<u64>,
}

/// What a tick did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticked {
    /// The schedule has advanced, and its job is stored.
    Done,
    /// It has advanced without the job: there was no room for it in the queue or in the partition.
    Skipped,
    /// Nothing: it has advanced already, or was changed.
    Late,
}

/// The refusal of one more schedule.
pub(crate) fn too_many(queue: &Name) -> Error {
    Error::Invalid {
        what: format!("schedule of queue {queue}"),
        given: "one more".into(),
        accepted: format!("at most {MOST_SCHEDULES}: delete one with delete_schedule"),
    }
}
