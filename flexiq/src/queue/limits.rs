//! The knobs that are turned at runtime: caps, rates, admission, pauses. What is set here stands above what tasks and
//! handles declare, survives deploys, and is taken back by its `clear_`.

use super::declared::declared;
use super::{Answer, Queue};
use crate::error::{Error, Result};
use crate::name::Name;
use crate::policy::{self, Rate};
use crate::store::{Change, Scope, Standing, Store};
use crate::task::{Registry, partition_name};

impl Queue {
    /// Lets at most `jobs` jobs of this task run at once, on the whole fleet.
    ///
    /// What runs already counts and runs on. Raising a limit starts waiting jobs at once.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for 0 (use [`pause_task`](Self::pause_task)) and for a task with `any_queue`, and
    /// [`Error::Unknown`] for a task that is neither linked nor known to the store.
    ///
    /// ```no_run
    /// # async fn example(queue: flexiq::Queue) -> flexiq::Result<()> {
    /// queue.set_task_concurrency("transcode", 4).await?;
    /// queue.clear_task_concurrency("transcode").await?; // back to what the attribute says
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "max_concurrent")]
    pub fn set_task_concurrency(&self, task: impl AsRef<str>, jobs: u32) -> Answer<()> {
        self.limit_task(
            task.as_ref(),
            concurrency(jobs, "pause_task").map(|jobs| Change::MaxConcurrent(Some(jobs))),
        )
    }

    /// Takes back what [`set_task_concurrency`](Self::set_task_concurrency) set.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a task that is neither linked nor known to the store.
    pub fn clear_task_concurrency(&self, task: impl AsRef<str>) -> Answer<()> {
        self.limit_task(task.as_ref(), Ok(Change::MaxConcurrent(None)))
    }

    /// Lets this task start at most so often, on the whole fleet: `"100/m"`, `"10/s, 100000/d"`, `"100/m spread"`.
    ///
    /// Starts under an earlier rate count as long as they are in the window; without a rate none were kept.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a rate that cannot be read and for a task with `any_queue`, and [`Error::Unknown`] for a
    /// task that is neither linked nor known to the store.
    #[doc(alias = "throttle")]
    pub fn set_task_rate_limit(&self, task: impl AsRef<str>, rate: impl AsRef<str>) -> Answer<()> {
        self.limit_task(task.as_ref(), rates(rate.as_ref()).map(|rates| Change::Rates(Some(rates))))
    }

    /// Takes back what [`set_task_rate_limit`](Self::set_task_rate_limit) set.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a task that is neither linked nor known to the store.
    pub fn clear_task_rate_limit(&self, task: impl AsRef<str>) -> Answer<()> {
        self.limit_task(task.as_ref(), Ok(Change::Rates(None)))
    }

    /// Starts no more jobs of this task until [`resume_task`](Self::resume_task). What runs, runs on.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a task that is neither linked nor known to the store.
    pub fn pause_task(&self, task: impl AsRef<str>) -> Answer<()> {
        self.limit_task(task.as_ref(), Ok(Change::Paused(true)))
    }

    /// Starts jobs of this task again, at once.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a task that is neither linked nor known to the store.
    pub fn resume_task(&self, task: impl AsRef<str>) -> Answer<()> {
        self.limit_task(task.as_ref(), Ok(Change::Paused(false)))
    }

    /// Lets at most `jobs` jobs of one partition of this task run at once, on the whole fleet, instead of what
    /// `max_concurrent_per_partition` says for each. The task's own cap holds all the same.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for 0 (use [`pause_partition`](Self::pause_partition)) and for a task without `partition_by`,
    /// and [`Error::Unknown`] for a task that is neither linked nor known to the store.
    ///
    /// ```no_run
    /// # async fn example(queue: flexiq::Queue) -> flexiq::Result<()> {
    /// queue.set_partition_concurrency("export", "acme", 20).await?;
    /// queue.clear_partition_concurrency("export", "acme").await?; // back to what holds for each
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_partition_concurrency(
        &self,
        task: impl AsRef<str>,
        partition: impl Into<String>,
        jobs: u32,
    ) -> Answer<()> {
        let change = concurrency(jobs, "pause_partition").map(|jobs| Change::MaxConcurrent(Some(jobs)));
        self.limit_partition(task.as_ref(), partition.into(), change)
    }

    /// Takes back what [`set_partition_concurrency`](Self::set_partition_concurrency) set.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a task without `partition_by`, and [`Error::Unknown`] for one that is neither linked nor
    /// known to the store.
    pub fn clear_partition_concurrency(
        &self,
        task: impl AsRef<str>,
        partition: impl Into<String>,
    ) -> Answer<()> {
        self.limit_partition(task.as_ref(), partition.into(), Ok(Change::MaxConcurrent(None)))
    }

    /// Lets jobs of one partition of this task start at most so often, on the whole fleet, instead of what
    /// `rate_limit_per_partition` says for each: `"100/m"`.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a rate that cannot be read and for a task without `partition_by`, and [`Error::Unknown`]
    /// for a task that is neither linked nor known to the store.
    #[doc(alias = "throttle")]
    pub fn set_partition_rate_limit(
        &self,
        task: impl AsRef<str>,
        partition: impl Into<String>,
        rate: impl AsRef<str>,
    ) -> Answer<()> {
        let change = rates(rate.as_ref()).map(|rates| Change::Rates(Some(rates)));
        self.limit_partition(task.as_ref(), partition.into(), change)
    }

    /// Takes back what [`set_partition_rate_limit`](Self::set_partition_rate_limit) set.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a task without `partition_by`, and [`Error::Unknown`] for one that is neither linked nor
    /// known to the store.
    pub fn clear_partition_rate_limit(
        &self,
        task: impl AsRef<str>,
        partition: impl Into<String>,
    ) -> Answer<()> {
        self.limit_partition(task.as_ref(), partition.into(), Ok(Change::Rates(None)))
    }

    /// Starts no more jobs of one partition until [`resume_partition`](Self::resume_partition). What runs, runs on.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a task without `partition_by`, and [`Error::Unknown`] for one that is neither linked nor
    /// known to the store.
    pub fn pause_partition(&self, task: impl AsRef<str>, partition: impl Into<String>) -> Answer<()> {
        self.limit_partition(task.as_ref(), partition.into(), Ok(Change::Paused(true)))
    }

    /// Starts jobs of one partition again, at once.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a task without `partition_by`, and [`Error::Unknown`] for one that is neither linked nor
    /// known to the store.
    pub fn resume_partition(&self, task: impl AsRef<str>, partition: impl Into<String>) -> Answer<()> {
        self.limit_partition(task.as_ref(), partition.into(), Ok(Change::Paused(false)))
    }

    /// Cancels all jobs of one partition: those that are pending end at once, those that run are told to stop. Answers
    /// how many both are.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a task without `partition_by`, and [`Error::Unknown`] for one that is neither linked nor
    /// known to the store.
    pub fn cancel_partition(&self, task: impl AsRef<str>, partition: impl Into<String>) -> Answer<u64> {
        let (store, task, partition) = (self.store().clone(), task.as_ref().to_owned(), partition.into());
        Answer::new(async move {
            let (task, partition) = known_partition(&*store, &task, partition).await?;
            let mut ended = 0;
            loop {
                let swept = store.cancel_partition(task.clone(), partition.clone()).await?;
                ended += swept.done;
                if !swept.more {
                    return Ok(ended + swept.requested);
                }
            }
        })
    }

    /// Lets at most `jobs` jobs of this queue run at once, on the whole fleet.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for 0 (use [`pause_queue`](Self::pause_queue)), and [`Error::Unknown`] for a queue that is
    /// neither a linked task's home nor known to the store.
    pub fn set_queue_concurrency(&self, queue: impl AsRef<str>, jobs: u32) -> Answer<()> {
        self.limit_queue(
            queue.as_ref(),
            concurrency(jobs, "pause_queue").map(|jobs| Change::MaxConcurrent(Some(jobs))),
        )
    }

    /// Takes back what [`set_queue_concurrency`](Self::set_queue_concurrency) set.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a queue that is neither a linked task's home nor known to the store.
    pub fn clear_queue_concurrency(&self, queue: impl AsRef<str>) -> Answer<()> {
        self.limit_queue(queue.as_ref(), Ok(Change::MaxConcurrent(None)))
    }

    /// Lets jobs of this queue start at most so often, on the whole fleet: `"100/m"`.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a rate that cannot be read, and [`Error::Unknown`] for a queue that is neither a linked
    /// task's home nor known to the store.
    #[doc(alias = "throttle")]
    pub fn set_queue_rate_limit(&self, queue: impl AsRef<str>, rate: impl AsRef<str>) -> Answer<()> {
        self.limit_queue(queue.as_ref(), rates(rate.as_ref()).map(|rates| Change::Rates(Some(rates))))
    }

    /// Takes back what [`set_queue_rate_limit`](Self::set_queue_rate_limit) set.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a queue that is neither a linked task's home nor known to the store.
    pub fn clear_queue_rate_limit(&self, queue: impl AsRef<str>) -> Answer<()> {
        self.limit_queue(queue.as_ref(), Ok(Change::Rates(None)))
    }

    /// Refuses enqueues that would let this queue hold more than `jobs` pending jobs: scheduled or ready.
    ///
    /// No enqueue passes it by one, from however many producers. A job that already got in is never refused.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for 0, and [`Error::Unknown`] for a queue that is neither a linked task's home nor known to the
    /// store.
    pub fn set_queue_max_pending(&self, queue: impl AsRef<str>, jobs: u64) -> Answer<()> {
        self.limit_queue(queue.as_ref(), max_pending(jobs).map(|jobs| Change::MaxPending(Some(jobs))))
    }

    /// Takes back what [`set_queue_max_pending`](Self::set_queue_max_pending) set.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a queue that is neither a linked task's home nor known to the store.
    pub fn clear_queue_max_pending(&self, queue: impl AsRef<str>) -> Answer<()> {
        self.limit_queue(queue.as_ref(), Ok(Change::MaxPending(None)))
    }

    /// Starts no more jobs of this queue until [`resume_queue`](Self::resume_queue). What runs, runs on.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a queue that is neither a linked task's home nor known to the store.
    pub fn pause_queue(&self, queue: impl AsRef<str>) -> Answer<()> {
        self.limit_queue(queue.as_ref(), Ok(Change::Paused(true)))
    }

    /// Starts jobs of this queue again, at once.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] for a queue that is neither a linked task's home nor known to the store.
    pub fn resume_queue(&self, queue: impl AsRef<str>) -> Answer<()> {
        self.limit_queue(queue.as_ref(), Ok(Change::Paused(false)))
    }

    /// What holds for each task, queue and partition that has a limit or is paused, and where it comes from.
    pub fn limits(&self) -> Answer<Vec<Standing>> {
        let store = self.store().clone();
        Answer::new(async move { store.limits().await })
    }

    fn limit_task(&self, task: &str, change: Result<Change>) -> Answer<()> {
        let (store, task) = (self.store().clone(), task.to_owned());
        Answer::new(async move {
            let change = change?;
            let task = known_task(&*store, &task, &change).await?;
            store.limit(Scope::Task(task), change).await
        })
    }

    fn limit_partition(&self, task: &str, partition: String, change: Result<Change>) -> Answer<()> {
        let (store, task) = (self.store().clone(), task.to_owned());
        Answer::new(async move {
            let change = change?;
            let (task, partition) = known_partition(&*store, &task, partition).await?;
            store.limit(Scope::Partition(task, partition), change).await
        })
    }

    fn limit_queue(&self, queue: &str, change: Result<Change>) -> Answer<()> {
        let (store, queue) = (self.store().clone(), queue.to_owned());
        Answer::new(async move {
            let change = change?;
            let queue = known_queue(&*store, &queue).await?;
            store.limit(Scope::Queue(queue), change).await
        })
    }
}

/// Checks a concurrency.
pub(super) fn concurrency(jobs: u32, pause: &str) -> Result<u32> {
    if jobs == 0 {
        return Err(Error::Invalid {
            what: "concurrency".into(),
            given: "0".into(),
            accepted: format!("1 or more; to start none at all, use {pause}"),
        });
    }
    Ok(jobs)
}

/// Checks a `max_pending`.
pub(super) fn max_pending(jobs: u64) -> Result<u64> {
    if jobs == 0 {
        return Err(Error::Invalid {
            what: "max_pending".into(),
            given: "0".into(),
            accepted: "1 or more".into(),
        });
    }
    Ok(jobs)
}

/// Reads a rate limit.
pub(super) fn rates(text: &str) -> Result<Vec<Rate>> {
    policy::notation::parse_rates(text).map_err(|accepted| Error::Invalid {
        what: "rate limit".into(),
        given: format!("{text:?}"),
        accepted,
    })
}

/// A task that is linked here or known to the store. Pausing is for every task; limits are not for one without a home.
async fn known_task(store: &dyn Store, task: &str, change: &Change) -> Result<Name> {
    let any_queue = match Registry::find(task)? {
        Some(definition) => definition.any_queue,
        None => declared(store, task).await?.any_queue,
    };
    if any_queue && !matches!(change, Change::Paused(_)) {
        return Err(Error::Invalid {
            what: format!("limit of task {task}"),
            given: "one of its own".into(),
            accepted:
                "limits of the queues it is put into, because it has any_queue: set_queue_concurrency, …"
                    .into(),
        });
    }
    Name::new("task", task)
}

/// A task with partitions that is linked here or known to the store, and the name of one of them.
async fn known_partition(store: &dyn Store, task: &str, partition: String) -> Result<(Name, String)> {
    let is_partitioned = match Registry::find(task)? {
        Some(definition) => definition.partition.is_some(),
        None => declared(store, task).await?.partitioned,
    };
    let what = || format!("partition of task {task}");
    if !is_partitioned {
        return Err(Error::Invalid {
            what: what(),
            given: format!("{partition:?}"),
            accepted: "a task with partition_by, which this one has not".into(),
        });
    }
    Ok((Name::new("task", task)?, partition_name(what, partition)?))
}

/// A queue that is a linked task's home or known to the store.
pub(super) async fn known_queue(store: &dyn Store, queue: &str) -> Result<Name> {
    let name = Name::new("queue", queue)?;
    let mut known: Vec<Name> = Registry::homes().map(Name::from_static).collect();
    known.extend(store.queues().await?);
    if known.contains(&name) {
        return Ok(name);
    }
    let nearest = policy::nearest(queue, known.iter().map(Name::as_str)).map(str::to_owned);
    Err(Error::Unknown { what: "queue", name: queue.into(), nearest })
}
