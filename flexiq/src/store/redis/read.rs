//! What is only read, and what is done by hand to one job: its queue is looked for.

use std::collections::BTreeMap;

use redis::Value;

use super::codes::{read_body, read_job, read_state, read_stored, write_lane};
use super::wire::{Parts, Unpacked, unreadable};
use super::{Shared, keys, scripts};
use crate::error::Result;
use crate::job::{Job, JobId};
use crate::name::Name;
use crate::store::types::{Cancelled, Counts, JobKey, Payload, Retried, Stored, Swept, TaskCounts};

/// Bytes of a body that hold all of it but the payload,
pub(super) const HEAD: &str = "2048";
/// and those that hold the payload, too.
const ALL: &str = "-1";

/// What the name of no task ends with: `MANY_COUNTS` does.
const NO_TASK: char = '\u{2}';

pub(super) async fn job(store: &Shared, id: JobId) -> Result<Option<Job>> {
    for queue in store.queues().await? {
        if let Some(job) = jobs(store, &queue, &[id]).await?.pop() {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// The jobs of one queue that are there.
pub(super) async fn jobs(store: &Shared, queue: &Name, ids: &[JobId]) -> Result<Vec<Job>> {
    let mut args = vec![HEAD.into()];
    args.extend(ids.iter().map(|id| id.as_bytes().to_vec()));
    let answer = store.run(&scripts::READ, queue, args).await?;
    read_jobs(store, queue, Parts::of(answer, store.place()))
}

/// The jobs of an answer: id, run and the head of a body each.
pub(super) fn read_jobs(store: &Shared, queue: &Name, mut parts: Parts<'_>) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    while !parts.is_empty() {
        let (id, run, body, progress) = (parts.bytes()?, parts.bytes()?, parts.bytes()?, parts.bytes()?);
        let job = Unpacked(&id).id().and_then(|id| read_job(id, queue, &run, &body, &progress));
        jobs.push(job.ok_or_else(|| unreadable(store.place(), "a job of another form"))?);
    }
    Ok(jobs)
}

pub(super) async fn payload(store: &Shared, id: JobId) -> Result<Option<Payload>> {
    for queue in store.queues().await? {
        let answer = store.run(&scripts::READ, &queue, vec![ALL.into(), id.as_bytes().to_vec()]).await?;
        let mut parts = Parts::of(answer, store.place());
        if !parts.is_empty() {
            let (_id, _run, body) = (parts.bytes()?, parts.bytes()?, parts.bytes()?);
            let body = read_body(&body).ok_or_else(|| unreadable(store.place(), "a job of another form"))?;
            return Ok(Some(body.payload));
        }
    }
    Ok(None)
}

pub(super) async fn counts(store: &Shared) -> Result<Counts> {
    let mut tasks = Vec::new();
    for queue in store.queues().await? {
        let mut by_task: BTreeMap<String, TaskCounts> = BTreeMap::new();
        for (field, jobs) in hash(store, &queue, "counts").await? {
            let (state, task) = field.split_at(1);
            let jobs = String::from_utf8(jobs).ok().and_then(|jobs| jobs.parse().ok());
            let jobs = jobs.ok_or_else(|| unreadable(store.place(), "a number that is none"))?;
            let counts = by_task.entry(task.to_owned()).or_default();
            match state {
                "0" => counts.scheduled = jobs,
                "3" => counts.succeeded = jobs,
                "4" => counts.dead = jobs,
                "5" => counts.cancelled = jobs,
                _ => counts.expired = jobs,
            }
        }
        for (task, active) in hash(store, &queue, "active").await? {
            let mut active = Unpacked(&active);
            let (Some(ready), Some(_in_partitions), Some(running)) =
                (active.word(), active.word(), active.word())
            else {
                return Err(unreadable(store.place(), "numbers of another form"));
            };
            let counts = by_task.entry(task).or_default();
            (counts.ready, counts.running) = (ready.into(), running.into());
        }
        tasks.extend(by_task.into_iter().map(|(task, counts)| TaskCounts {
            queue: queue.to_string(),
            task,
            ..counts
        }));
    }
    Ok(Counts { tasks })
}

/// A hash of a queue that has names of tasks as fields, without what keeps it large.
async fn hash(store: &Shared, queue: &Name, key: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let key = keys::one_of_queue(store.prefix(), queue, key);
    let mut parts = Parts::of(store.call(redis::cmd("HGETALL").arg(key)).await?, store.place());
    let mut fields = Vec::new();
    while !parts.is_empty() {
        let (field, value) = (parts.text()?, parts.bytes()?);
        if !field.ends_with(NO_TASK) {
            fields.push((field, value));
        }
    }
    Ok(fields)
}

/// Asks how a job has ended; a job that has not is `Later`, and this handle will be told.
pub(super) async fn ended(store: &Shared, key: &JobKey) -> Result<Ended> {
    let args = vec![key.id.as_bytes().to_vec(), store.handle.to_vec()];
    let answer = store.run(&scripts::ENDED, &key.queue, args).await?;
    let mut parts = Parts::of(answer, store.place());
    match parts.text()?.as_str() {
        "none" => Ok(Ended::NotThere),
        "later" => Ok(Ended::Later),
        _ => {
            let (run, value) = (parts.bytes()?, parts.bytes()?);
            let stored = read_stored(key.id, &run, &value);
            stored.map(Ended::So).ok_or_else(|| unreadable(store.place(), "an end of another form"))
        }
    }
}

/// How a job has ended, if it has.
pub(super) enum Ended {
    NotThere,
    Later,
    So(Stored),
}

pub(super) async fn cancel(store: &Shared, id: JobId) -> Result<Option<Cancelled>> {
    for queue in store.queues().await? {
        let answer = store.run(&scripts::CANCEL, &queue, vec![id.as_bytes().to_vec()]).await?;
        let mut parts = Parts::of(answer, store.place());
        match parts.text()?.as_str() {
            "none" => {}
            "done" => return Ok(Some(Cancelled::Done)),
            "requested" => return Ok(Some(Cancelled::Requested)),
            _ => {
                let state = read_state(parts.number()? as u8, parts.number()? as u8);
                let state = state.ok_or_else(|| unreadable(store.place(), "an unknown state"))?;
                return Ok(Some(Cancelled::AlreadyEnded(state)));
            }
        }
    }
    Ok(None)
}

/// At most this many pending jobs of a partition are cancelled in one call.
const MOST_SWEPT: u64 = 1_000;

pub(super) async fn cancel_partition(store: &Shared, task: &Name, partition: &str) -> Result<Swept> {
    let mut swept = Swept::default();
    for queue in store.queues().await? {
        let room = (MOST_SWEPT - swept.done).to_string().into_bytes();
        let args = vec![write_lane(task, partition), room];
        let answer = store.run(&scripts::CANCEL_PARTITION, &queue, args).await?;
        let mut parts = Parts::of(answer, store.place());
        swept.done += parts.number()?.unsigned_abs();
        swept.requested += parts.number()?.unsigned_abs();
        swept.more |= parts.number()? > 0;
    }
    Ok(swept)
}

/// Retries a job, wherever it lies.
pub(super) async fn retry(store: &Shared, id: JobId) -> Result<Retried> {
    for queue in store.queues().await? {
        let answer = store.run(&scripts::RETRY, &queue, vec![id.as_bytes().to_vec()]).await?;
        match answer {
            Value::Int(1) => return Ok(Retried::Done),
            Value::Int(0) => return Ok(Retried::Untouched),
            Value::BulkString(owner) => {
                let owner = Unpacked(&owner).id().map(JobId::from_bytes);
                return owner.map(Retried::KeyTaken).ok_or_else(|| unreadable(store.place(), "no id"));
            }
            _ => {}
        }
    }
    Ok(Retried::Untouched)
}

/// Deletes a job, wherever it lies; false if it has not ended, or is not there.
pub(super) async fn delete(store: &Shared, id: JobId) -> Result<bool> {
    for queue in store.queues().await? {
        let answer = store.run(&scripts::DELETE, &queue, vec![id.as_bytes().to_vec()]).await?;
        let answer = Parts::of(answer, store.place()).number()?;
        if answer >= 0 {
            return Ok(answer > 0);
        }
    }
    Ok(false)
}
