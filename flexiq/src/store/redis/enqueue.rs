//! enqueue: stores a batch of one queue, all or none.

use super::codes::{millis, rank, write_body};
use super::wire::{Packed, Parts, Unpacked, unreadable};
use super::{Shared, read, scripts};
use crate::error::{Error, Result};
use crate::job::{Due, JobId};
use crate::name::Name;
use crate::store::types::{Enqueue, Enqueued, NewJob};

pub(super) async fn enqueue(store: &Shared, batch: Enqueue) -> Result<Vec<Enqueued>> {
    let max_pending = batch.max_pending.map(|jobs| jobs.to_string()).unwrap_or_default();
    let mut args = vec![max_pending.into_bytes()];
    for job in &batch.jobs {
        args.push(head(job));
        args.push(write_body(job));
    }
    refuse_ids_of_other_queues(store, &batch).await?;
    loop {
        let answer = store.run(&scripts::ENQUEUE, &batch.queue, args.clone()).await?;
        let mut parts = Parts::of(answer, store.place());
        match parts.text()?.as_str() {
            "new" => store.make_known(&batch.queue).await?,
            "stored" => return stored(&batch, &parts.bytes()?, store.place()),
            "full" => {
                return Err(Error::QueueFull {
                    queue: batch.queue.to_string(),
                    max_pending: parts.number()?.unsigned_abs(),
                    pending: parts.number()?.unsigned_abs(),
                });
            }
            _ => {
                let id = Unpacked(&parts.bytes()?).id().map(JobId::from_bytes);
                let id = id.ok_or_else(|| unreadable(store.place(), "no id"))?;
                return Err(clash(&batch, id, &parts.text()?, &batch.queue));
            }
        }
    }
}

/// What a script has to know of a job.
fn head(job: &NewJob) -> Vec<u8> {
    let (is_moment, due) = when(job.due);
    let given = u8::from(is_moment) + 2 * u8::from(job.expires.is_some());
    Packed::default()
        .bytes(job.id.as_bytes())
        .byte(rank(job.priority))
        .byte(given)
        .moment(due)
        .moment(job.expires.map(millis).unwrap_or_default())
        .text(&job.task)
        .0
}

/// Whether it is a moment, and its milliseconds.
pub(super) fn when(due: Due) -> (bool, i64) {
    match due {
        Due::In(wait) => (false, millis(wait)),
        Due::At(moment) => (true, moment.as_millis()),
    }
}

fn stored(batch: &Enqueue, answers: &[u8], place: &str) -> Result<Vec<Enqueued>> {
    if answers.len() != batch.jobs.len() {
        return Err(unreadable(place, "an answer of another length"));
    }
    let answer = |(job, answer): (&NewJob, &u8)| Enqueued { id: job.id, is_duplicate: *answer == b'd' };
    Ok(batch.jobs.iter().zip(answers).map(answer).collect())
}

/// Looks for the ids that the caller chose in the other queues: a step of its own, because each queue has its own.
async fn refuse_ids_of_other_queues(store: &Shared, batch: &Enqueue) -> Result<()> {
    let given: Vec<JobId> = batch.jobs.iter().filter(|job| job.is_given).map(|job| job.id).collect();
    if given.is_empty() {
        return Ok(());
    }
    for queue in store.queues().await?.into_iter().filter(|queue| *queue != batch.queue) {
        if let Some(there) = read::jobs(store, &queue, &given).await?.first() {
            return Err(clash(batch, there.id, &there.task, &queue));
        }
    }
    Ok(())
}

fn clash(batch: &Enqueue, id: JobId, there: &str, queue: &Name) -> Error {
    let task = batch.jobs.iter().rev().find(|job| job.id == id).map_or("", |job| &*job.task);
    Error::Invalid {
        what: "job id".into(),
        given: format!("{id} for task {task} in queue {}", batch.queue),
        accepted: format!("another id: this one is a job of task {there} in queue {queue}"),
    }
}
