//! enqueue: stores batches of one queue in one step, of each all or none.

use std::sync::Arc;

use super::codes::{millis, rank, release_code, write_body};
use super::wire::{Packed, Parts, Unpacked, unreadable};
use super::{Shared, line, read, scripts};
use crate::error::{Error, Result};
use crate::job::{Due, JobId};
use crate::name::Name;
use crate::store::types::{Enqueue, Enqueued, NewJob};
use crate::store::unique::{OnDuplicate, Unique};
use crate::store::{never_fits, other_partition};

pub(super) async fn enqueue(store: &Arc<Shared>, batch: Enqueue) -> Result<Vec<Enqueued>> {
    refuse_ids_of_other_queues(store, &batch).await?;
    let Some(producer) = batch.producer else { return line::enqueue(store, batch).await };
    // Listen first, then look: room that comes in between is told.
    store.hub.await_room(producer);
    let stored = line::enqueue(store, batch).await?;
    store.hub.forget_room(producer);
    Ok(stored)
}

/// Stores the batches that are not refused; answers each.
pub(super) async fn store_all(
    store: &Shared,
    queue: &Name,
    batches: &[Enqueue],
) -> Result<Vec<Result<Vec<Enqueued>>>> {
    loop {
        let answer = store.run(&scripts::ENQUEUE, queue, arguments(batches, &store.handle)).await?;
        let mut parts = Parts::of(answer, store.place());
        if parts.text()? == "new" {
            store.make_known(queue).await?;
            continue;
        }
        return batches.iter().map(|batch| read_answer(batch, &mut parts, store.place())).collect();
    }
}

fn arguments(batches: &[Enqueue], handle: &[u8; 16]) -> Vec<Vec<u8>> {
    let number = |number: usize| number.to_string().into_bytes();
    let jobs: Vec<&NewJob> = batches.iter().flat_map(|batch| &batch.jobs).collect();
    let mut args = Vec::with_capacity(2 * jobs.len() + 8 * batches.len());
    args.push(number(repeats(&jobs).into()));
    args.push(number(jobs.len()));
    args.extend(jobs.iter().map(|job| job.id.as_bytes().to_vec()));
    args.push(number(batches.len()));
    for batch in batches {
        let groups: Vec<&[NewJob]> = batch.jobs.chunk_by(are_alike).collect();
        args.push(batch.max_pending.map(|jobs| jobs.to_string()).unwrap_or_default().into_bytes());
        args.push(batch.producer.map(|id| [*id.as_bytes(), *handle].concat()).unwrap_or_default());
        args.push(number(groups.len()));
        for group in groups {
            args.push(head(&group[0], group.len()));
            args.extend(group.iter().map(write_body));
        }
    }
    let unique = (1..).zip(&jobs).filter_map(|(index, job)| job.unique.map(|unique| call(index, unique)));
    let before = args.len();
    args.extend(unique);
    args.push(number(args.len() - before));
    args
}

/// By what the job of an index is the only one.
fn call(index: u32, Unique { key, release, on_duplicate }: Unique) -> Vec<u8> {
    let on_duplicate = match on_duplicate {
        OnDuplicate::Keep => 0,
        OnDuplicate::Replace => 1,
        OnDuplicate::Postpone => 2,
    };
    let call = Packed::default().word(index).bytes(key.as_bytes()).byte(release_code(release));
    call.byte(on_duplicate).moment(millis(release.held_for())).0
}

/// Whether an id is named twice. Ids that were made one after the other ascend.
fn repeats(jobs: &[&NewJob]) -> bool {
    let mut ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    ids.sort_unstable();
    ids.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether jobs have one place in the order but for their ids.
fn are_alike(a: &NewJob, b: &NewJob) -> bool {
    a.task == b.task
        && a.partition == b.partition
        && a.max_pending_per_partition == b.max_pending_per_partition
        && a.priority == b.priority
        && a.due == b.due
        && a.expires == b.expires
}

/// What a script has to know of so many jobs that are alike.
pub(super) fn head(job: &NewJob, jobs: usize) -> Vec<u8> {
    let (is_moment, due) = when(job.due);
    let has_partition = !job.partition.is_empty();
    let given = u8::from(is_moment) + 2 * u8::from(job.expires.is_some()) + 4 * u8::from(has_partition);
    let head = Packed::default()
        .byte(rank(job.priority))
        .byte(given)
        .moment(due)
        .moment(job.expires.map(millis).unwrap_or_default())
        .text(&job.task)
        .word(jobs as u32);
    if !has_partition {
        return head.0;
    }
    let max_pending = job.max_pending_per_partition.map(|jobs| jobs.to_string()).unwrap_or_default();
    head.text(&job.partition).bytes(max_pending.as_bytes()).0
}

/// Whether it is a moment, and its milliseconds.
pub(super) fn when(due: Due) -> (bool, i64) {
    match due {
        Due::In(wait) => (false, millis(wait)),
        Due::At(moment) => (true, moment.as_millis()),
    }
}

/// What became of one batch.
fn read_answer(batch: &Enqueue, parts: &mut Parts<'_>, place: &str) -> Result<Result<Vec<Enqueued>>> {
    let (kind, told) = (parts.text()?, parts.bytes()?);
    match kind.as_str() {
        "stored" => stored(batch, &told, place).map(Ok),
        "full" => {
            let told = String::from_utf8_lossy(&told);
            let numbers = read_numbers(&mut told.splitn(2, ' '));
            let (max_pending, pending) = numbers.ok_or_else(|| unreadable(place, "no limit"))?;
            Ok(Err(Error::QueueFull { queue: batch.queue.to_string(), max_pending, pending }))
        }
        "crowded" => {
            let told = String::from_utf8_lossy(&told);
            let mut parts = told.splitn(4, ' ');
            let numbers = read_numbers(&mut parts);
            let (max_pending, pending) = numbers.ok_or_else(|| unreadable(place, "no limit"))?;
            let mut text = || parts.next().unwrap_or_default().to_owned();
            Ok(Err(Error::PartitionFull { task: text(), partition: text(), max_pending, pending }))
        }
        "never" => {
            let told = String::from_utf8_lossy(&told);
            let numbers = read_numbers(&mut told.splitn(2, ' '));
            let (jobs, max_pending) = numbers.ok_or_else(|| unreadable(place, "no limit"))?;
            Ok(Err(never_fits(jobs, max_pending)))
        }
        "misplaced" => {
            let owner = Unpacked(&told).id().map(JobId::from_bytes);
            Ok(Err(other_partition(owner.ok_or_else(|| unreadable(place, "no id"))?)))
        }
        _ => {
            let mut told = Unpacked(&told);
            let id = told.id().map(JobId::from_bytes).ok_or_else(|| unreadable(place, "no id"))?;
            Ok(Err(clash(batch, id, &String::from_utf8_lossy(told.0), &batch.queue)))
        }
    }
}

/// A limit, and what is pending.
fn read_numbers<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Option<(u64, u64)> {
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn stored(batch: &Enqueue, told: &[u8], place: &str) -> Result<Vec<Enqueued>> {
    let mut owners = Unpacked(told);
    let fates = owners.take(batch.jobs.len());
    let mut answer = |(job, fate): (&NewJob, &u8)| {
        Some(match fate {
            b'n' => Enqueued::new(job.id),
            b'd' => Enqueued::there(job.id),
            replaced => {
                let there = Enqueued::there(JobId::from_bytes(owners.id()?));
                Enqueued { is_replaced: *replaced == b'r', ..there }
            }
        })
    };
    fates
        .and_then(|fates| batch.jobs.iter().zip(fates).map(&mut answer).collect())
        .ok_or_else(|| unreadable(place, "an answer of another length"))
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
