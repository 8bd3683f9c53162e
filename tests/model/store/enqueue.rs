//! enqueue: all of a batch or nothing.

use std::collections::{BTreeMap, BTreeSet};

use flexiq::internals::{Enqueue, Enqueued, Name, NewJob, OnDuplicate, Scope, Timestamp, UniqueKey};
use flexiq::{Error, JobId, Result, ScheduledReason, State};

use super::manner::Manner;
use super::record::{Cancel, Record};
use super::room;
use super::story::Chronicle;
use super::unique;
use super::workers::publish_to;
use super::world::World;

pub(super) fn enqueue(world: &mut World, now: Timestamp, batch: Enqueue) -> Result<Vec<Enqueued>> {
    let admitted = match world.manner {
        Manner::Sqlite => admit(world, now, &batch, Look::ForRoom),
        Manner::Redis => {
            look_elsewhere(world, &batch)?;
            if !world.queues.contains(&batch.queue) {
                world.know(now, &batch.queue);
                publish_to(world, now, [batch.queue.clone()]);
            }
            admit(world, now, &batch, Look::ForIds).and_then(|_| admit(world, now, &batch, Look::ForRoom))
        }
    };
    let fates = match (admitted, batch.producer) {
        (Ok(fates), producer) => {
            producer.into_iter().for_each(|producer| room::leave(world, producer));
            fates
        }
        (Err(full), Some(producer)) => return Err(room::stand(world, now, &batch, producer, full)),
        (Err(error), None) => return Err(error),
    };
    let Enqueue { queue, jobs, .. } = batch;
    let (mut answers, mut timed) = (Vec::new(), 0);
    for (job, fate) in jobs.into_iter().zip(fates) {
        let id = job.id;
        answers.push(match fate {
            Fate::There => Enqueued::there(id),
            Fate::Of(owner) => unique::replace(world, now, owner, job),
            Fate::New => {
                timed += usize::from(job.unique.is_some_and(|unique| unique.release.is_timed()));
                world.jobs.insert(id, record(now, &queue, job));
                unique::take(world, now, id);
                Enqueued::new(id)
            }
        });
    }
    // So that forgetting keeps up with any rate of calls.
    unique::forget_over(world, now, &queue, 2 * timed);
    world.know(now, &queue);
    Ok(answers)
}

/// What will become of a job of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    New,
    /// Its id is there already.
    There,
    /// This job has its key.
    Of(JobId),
}

/// What is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Ids that other jobs have.
    ForIds,
    /// Those, and room in the queue and in partitions.
    ForRoom,
}

/// Whether another queue has a job of one of these ids.
fn look_elsewhere(world: &World, batch: &Enqueue) -> Result<()> {
    let elsewhere = |job: &&NewJob| world.jobs.get(&job.id).filter(|record| record.queue != batch.queue);
    match batch.jobs.iter().find_map(|job| elsewhere(&job).map(|there| (job, there))) {
        Some((job, there)) => Err(clash(job, &batch.queue, (&there.queue, &there.task))),
        None => Ok(()),
    }
}

/// Which jobs, or their keys, are there already, in the store or earlier in the batch; or the first thing that is wrong, in their order.
fn admit(world: &World, now: Timestamp, batch: &Enqueue, look: Look) -> Result<Vec<Fate>> {
    let Enqueue { queue, jobs, max_pending, producer } = batch;
    let most = world.gates.max_pending(Scope::Queue(queue.clone())).or(*max_pending);
    let most = most.filter(|_| look == Look::ForRoom);
    let pending = room::pending(world, &Scope::Queue(queue.clone()), queue);
    let kept = room::kept(world, now, queue, &Scope::Queue(queue.clone()), *producer);
    let mut fresh: BTreeMap<JobId, &NewJob> = BTreeMap::new();
    let mut fresh_keys: BTreeMap<UniqueKey, &NewJob> = BTreeMap::new();
    let mut fates = Vec::new();
    for job in jobs {
        let stored = world.jobs.get(&job.id).map(|record| (&record.queue, &record.task));
        let there = stored.or_else(|| fresh.get(&job.id).map(|&other| (queue, &other.task)));
        if there.is_none()
            && let Some(owner) = owner_of(world, now, queue, &fresh_keys, job)?
        {
            fates.push(Fate::Of(owner));
            continue;
        }
        fates.push(if there.is_some() { Fate::There } else { Fate::New });
        match (there, most) {
            (Some(there), _) if there != (queue, &job.task) => return Err(clash(job, queue, there)),
            (Some(_), _) => {}
            (None, Some(max_pending)) if pending + kept + fresh.len() as u64 >= max_pending => {
                return Err(Error::QueueFull { queue: queue.to_string(), max_pending, pending });
            }
            (None, _) => {
                let of_batch = fresh.values().filter(|other| is_same_partition(other, job)).count() as u64;
                if look == Look::ForRoom {
                    admit_partition(world, now, batch, job, of_batch)?;
                }
                fresh.insert(job.id, job);
                fresh_keys.extend(job.unique.map(|unique| (unique.key, job)));
            }
        }
    }
    Ok(fates)
}

/// The job that has the key of another, in the store or earlier in the batch.
fn owner_of(
    world: &World,
    now: Timestamp,
    queue: &Name,
    fresh: &BTreeMap<UniqueKey, &NewJob>,
    job: &NewJob,
) -> Result<Option<JobId>> {
    let Some(unique) = job.unique else { return Ok(None) };
    let (owner, is_misplaced) = match (unique::owner(world, now, queue, unique.key), fresh.get(&unique.key)) {
        (Some(owner), _) => (owner, unique::is_misplaced(world.jobs.get(&owner), job)),
        (None, Some(other)) => (other.id, !is_same_partition(other, job)),
        (None, None) => return Ok(None),
    };
    if unique.on_duplicate != OnDuplicate::Keep && is_misplaced {
        return Err(Error::Invalid {
            what: "arguments that replace those of a job".into(),
            given: format!("some of another partition than that of job {owner}"),
            accepted: "those of its own".into(),
        });
    }
    Ok(Some(owner))
}

/// The jobs of a batch that would be stored if there were room.
pub(super) fn new_jobs<'a>(world: &World, now: Timestamp, batch: &'a Enqueue) -> Vec<&'a NewJob> {
    let (mut ids, mut keys) = (BTreeSet::new(), BTreeSet::new());
    let is_taken = |key: UniqueKey| unique::owner(world, now, &batch.queue, key).is_some();
    let is_new = |job: &&NewJob| {
        let has_key = job.unique.is_none_or(|unique| !is_taken(unique.key) && keys.insert(unique.key));
        !world.jobs.contains_key(&job.id) && has_key && ids.insert(job.id)
    };
    batch.jobs.iter().filter(is_new).collect()
}

fn is_same_partition(one: &NewJob, other: &NewJob) -> bool {
    one.task == other.task && one.partition == other.partition
}

/// Whether a partition takes one more job beside those of this batch.
fn admit_partition(
    world: &World,
    now: Timestamp,
    batch: &Enqueue,
    job: &NewJob,
    of_batch: u64,
) -> Result<()> {
    if job.partition.is_empty() {
        return Ok(());
    }
    let scope = Scope::Partition(job.task.clone(), job.partition.clone());
    let Some(max_pending) = world.gates.max_pending(scope.clone()).or(job.max_pending_per_partition) else {
        return Ok(());
    };
    let pending = room::pending(world, &scope, &batch.queue);
    let kept = room::kept(world, now, &batch.queue, &scope, batch.producer);
    if pending + kept + of_batch >= max_pending {
        return Err(Error::PartitionFull {
            task: job.task.to_string(),
            partition: job.partition.clone(),
            max_pending,
            pending,
        });
    }
    Ok(())
}

fn clash(job: &NewJob, queue: &Name, there: (&Name, &Name)) -> Error {
    Error::Invalid {
        what: "job id".into(),
        given: format!("{} for task {} in queue {queue}", job.id, job.task),
        accepted: format!("another id: this one is a job of task {} in queue {}", there.1, there.0),
    }
}

fn record(now: Timestamp, queue: &Name, job: NewJob) -> Record {
    let due = job.due.from(now);
    let is_due = due <= now;
    let due_at = due.max(now);
    Record {
        id: job.id,
        queue: queue.clone(),
        task: job.task,
        partition: job.partition,
        payload: job.payload,
        priority: job.priority,
        outset: job.outset,
        unique: job.unique,
        state: if is_due { State::Ready } else { State::Scheduled(ScheduledReason::Delay) },
        runs: 0,
        failures: 0,
        deferrals: 0,
        losses: 0,
        last_error: None,
        cancel: Cancel::No,
        enqueued_at: now,
        due_at,
        expires_at: job.expires.map(|expires| due_at + expires),
        started_at: None,
        ended_at: None,
        lease: None,
        kept_until: None,
        value: None,
        chronicle: Chronicle::default(),
    }
}
