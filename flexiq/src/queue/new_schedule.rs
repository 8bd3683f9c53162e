//! A call that is scheduled at runtime: checked like an enqueue, and stored to be enqueued at each tick.

use std::fmt;
use std::future::IntoFuture;

use super::draft::{Draft, Ready};
use super::{Answer, Enqueue, Queue};
use crate::error::{Error, Result};
use crate::job::Due;
use crate::name::Name;
use crate::policy::CronSchedule;
use crate::store::{Origin, Planning, Schedule, Standby, Store};

/// Arguments of a schedule have so many bytes at most: all of them are read to show what there is.
const MAX_ARGUMENTS: usize = 16 * 1024;

/// A call that is to be enqueued by the clock: [`Queue::schedule`].
#[must_use = "nothing is scheduled until it is awaited, or `.blocking()` is called"]
pub struct NewSchedule {
    handle: Queue,
    name: String,
    pattern: String,
    timezone: String,
    catch_up: bool,
    call: (Queue, Draft),
}

impl Queue {
    /// Enqueues this call at each tick of a cron, one job on the whole fleet: five fields, or six with seconds first, by the
    /// wall clock of an IANA time zone.
    ///
    /// The call is stored with what it sets: arguments, priority, `expires`, and so on. A schedule of this name is replaced;
    /// with the same cron it keeps the tick that it has reached, and paused it stays. It ticks as long as any worker of the
    /// store lives, until it is [deleted](Self::delete_schedule). Under the name of a task that declares a cron, it stands above
    /// that.
    ///
    /// # Errors
    ///
    /// On awaiting it: [`Error::Invalid`] for a cron that cannot be read or never comes, for a name that another schedule has, for a
    /// call with a due time, an id, a unique key or `or_wait`, for arguments above 16 KiB, and for a queue with 1,000 schedules;
    /// [`Error::Unknown`] for a time zone, naming the nearest; and what the call itself would be refused for.
    ///
    /// ```
    /// # use flexiq::Queue;
    /// #[flexiq::task]
    /// async fn report_by_the_clock(account: String) {}
    ///
    /// # #[tokio::main]
    /// # async fn main() -> flexiq::Result<()> {
    /// let queue = Queue::open("sqlite::memory:").await?;
    /// let call = enqueue_report_by_the_clock(&queue, "acme".into()).priority(5);
    /// queue.schedule("report-of-acme", "0 7 * * MON", "Europe/Stockholm", call).await?;
    ///
    /// let known = queue.schedules().await?;
    /// assert_eq!((known[0].name.as_str(), known[0].task.as_str()), ("report-of-acme", "report_by_the_clock"));
    /// queue.delete_schedule("report-of-acme").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "cron")]
    #[doc(alias = "periodic")]
    #[doc(alias = "recurring")]
    pub fn schedule<T, Q>(
        &self,
        name: impl Into<String>,
        cron: impl Into<String>,
        timezone: impl Into<String>,
        call: Enqueue<T, Q>,
    ) -> NewSchedule {
        NewSchedule {
            handle: self.clone(),
            name: name.into(),
            pattern: cron.into(),
            timezone: timezone.into(),
            catch_up: false,
            call: call.into_parts(),
        }
    }
}

impl NewSchedule {
    /// Makes up for one tick where no worker was there for any length of time. Defaults to none: what was missed by more
    /// than a minute is passed over.
    pub fn catch_up_one(mut self) -> Self {
        self.catch_up = true;
        self
    }

    /// Schedules the call and waits for that on this thread: for code that is not `async`.
    ///
    /// # Errors
    ///
    /// Those of awaiting it.
    pub fn blocking(self) -> Result<()> {
        self.into_future().blocking()
    }

    async fn set(self) -> Result<()> {
        let Self { handle, name, pattern, timezone, catch_up, call } = self;
        let name = Name::new("schedule", name)?;
        let cron = CronSchedule::new(&pattern, &timezone)?;
        let (made_for, draft) = call;
        if !made_for.is_same_as(&handle) {
            return Err(Error::Invalid {
                what: format!("call of schedule {name}"),
                given: format!("one made for {made_for:?} in {handle:?}"),
                accepted: "one made with the same `Queue`, or a clone of it".into(),
            });
        }
        let store = handle.store();
        let ready = draft.resolve(&**store, handle.shared.max_payload).await?;
        let queue = ready.queue.clone();
        let schedule = schedule(&name, cron, catch_up, ready)?;
        refuse_name_of_another(&**store, &queue, &name, &schedule).await?;
        store.schedule(queue, name, Planning::Set(Box::new(schedule))).await
    }
}

impl IntoFuture for NewSchedule {
    type Output = Result<()>;
    type IntoFuture = Answer<()>;

    fn into_future(self) -> Self::IntoFuture {
        Answer::new(self.set())
    }
}

impl fmt::Debug for NewSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSchedule")
            .field("name", &self.name)
            .field("pattern", &self.pattern)
            .field("timezone", &self.timezone)
            .field("catch_up", &self.catch_up)
            .finish_non_exhaustive()
    }
}

/// What is enqueued at each tick.
fn schedule(name: &Name, cron: CronSchedule, catch_up: bool, ready: Ready) -> Result<Schedule> {
    let Ready { job, patience, .. } = ready;
    let refused = |given: &str, accepted: &str| {
        let (what, given, accepted) = (format!("call of schedule {name}"), given.into(), accepted.into());
        Err(Error::Invalid { what, given, accepted })
    };
    if job.due != Due::NOW {
        return refused("one with .delay(..) or .at(..)", "no due time: its ticks are that");
    }
    if job.is_given {
        return refused("one with .id(..)", "no id: each tick makes a job of its own");
    }
    if patience.is_some() {
        return refused("one with .or_wait(..)", "none: a tick that finds no room is skipped");
    }
    if job.unique.is_some() {
        return refused("one with a unique key", "no key: each tick makes a job of its own");
    }
    let bytes = job.payload.bytes.len();
    if bytes > MAX_ARGUMENTS {
        return Err(Error::Invalid {
            what: format!("arguments of schedule {name}"),
            given: format!("{bytes} bytes"),
            accepted: format!("at most {MAX_ARGUMENTS}: keep what is large elsewhere, and say where it lies"),
        });
    }
    Ok(Schedule {
        cron,
        catch_up,
        task: job.task,
        partition: job.partition,
        max_pending_per_partition: job.max_pending_per_partition,
        arguments: String::from_utf8(job.payload.bytes).expect("arguments are encoded as JSON"),
        priority: job.priority,
        expires: job.expires,
        outset: job.outset,
    })
}

/// Two schedules of one name, in two queues or of two tasks, would be taken for one.
async fn refuse_name_of_another(
    store: &dyn Store,
    queue: &Name,
    name: &Name,
    schedule: &Schedule,
) -> Result<()> {
    let all = store.schedules().await?;
    let is_other = |standby: &&Standby| {
        let is_other_task = standby.origin == Origin::Declared && standby.schedule.task != schedule.task;
        standby.name == *name && !standby.is_asleep && (standby.queue != *queue || is_other_task)
    };
    let Some(other) = all.iter().find(is_other) else { return Ok(()) };
    Err(Error::Invalid {
        what: "schedule name".into(),
        given: name.to_string(),
        accepted: format!(
            "another: there is one of task {} in queue {} under this name",
            other.schedule.task, other.queue
        ),
    })
}
