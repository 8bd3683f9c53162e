//! enqueue: stores a batch of one queue, all or none.

use super::codes::{millis, rank, write_body};
use super::wire::{Packed, Parts, Unpacked, unreadable};
use super::{Shared, scripts};
use crate::error::{Error, Result};
use crate::job::{Due, JobId};
use crate::store::types::{Enqueue, Enqueued, NewJob};

pub(super) async fn enqueue(store: &Shared, batch: Enqueue) -> Result<Vec<Enqueued>> {
    let max_pending = batch.max_pending.map(|jobs| jobs.to_string()).unwrap_or_default();
    let mut args = vec![max_pending.into_bytes()];
    for job in &batch.jobs {
        args.push(head(job));
        args.push(write_body(job));
    }
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
                let (id, there) = (parts.bytes()?, parts.text()?);
                return Err(clash(&batch, &id, &there, store.place()));
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

fn clash(batch: &Enqueue, id: &[u8], there: &str, place: &str) -> Error {
    let Some(id) = Unpacked(id).id().map(JobId::from_bytes) else { return unreadable(place, "no id") };
    let task = batch.jobs.iter().rev().find(|job| job.id == id).map(|job| &job.task);
    let Some(task) = task else { return unreadable(place, "an id that was not sent") };
    Error::Invalid {
        what: "job id".into(),
        given: format!("{id} for task {task} in queue {}", batch.queue),
        accepted: format!("another id: this one is a job of task {there} in queue {}", batch.queue),
    }
}
