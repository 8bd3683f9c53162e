//! enqueue: all of a batch or nothing.

use std::collections::BTreeMap;

use flexiq::internals::{Enqueue, Enqueued, Name, NewJob, Timestamp};
use flexiq::{Error, JobId, Result, ScheduledReason, State};

use super::manner::Manner;
use super::record::{Cancel, Record};
use super::workers::publish_to;
use super::world::World;

pub(super) fn enqueue(world: &mut World, now: Timestamp, batch: Enqueue) -> Result<Vec<Enqueued>> {
    let most = world.gates.max_pending(&batch.queue).or(batch.max_pending);
    let answers = match world.manner {
        Manner::Sqlite => admit(world, &batch, most)?,
        Manner::Redis => {
            look_elsewhere(world, &batch)?;
            if !world.queues.contains(&batch.queue) {
                world.know(now, &batch.queue);
                publish_to(world, now, [batch.queue.clone()]);
            }
            admit(world, &batch, None).and_then(|_| admit(world, &batch, most))?
        }
    };
    let Enqueue { queue, jobs, .. } = batch;
    for (job, answer) in jobs.into_iter().zip(&answers) {
        if !answer.is_duplicate {
            world.jobs.insert(job.id, record(now, &queue, job));
        }
    }
    world.know(now, &queue);
    Ok(answers)
}

/// Whether another queue has a job of one of these ids.
fn look_elsewhere(world: &World, batch: &Enqueue) -> Result<()> {
    let elsewhere = |job: &&NewJob| world.jobs.get(&job.id).filter(|record| record.queue != batch.queue);
    match batch.jobs.iter().find_map(|job| elsewhere(&job).map(|there| (job, there))) {
        Some((job, there)) => Err(clash(job, &batch.queue, (&there.queue, &there.task))),
        None => Ok(()),
    }
}

/// Which jobs are there already, in the store or earlier in the batch; or the first thing that is wrong, in their order.
fn admit(world: &World, batch: &Enqueue, most: Option<u64>) -> Result<Vec<Enqueued>> {
    let Enqueue { queue, jobs, .. } = batch;
    let pending = world.of_queue(queue).filter(|record| record.state.is_pending()).count() as u64;
    let mut fresh: BTreeMap<JobId, &Name> = BTreeMap::new();
    let mut answers = Vec::new();
    for job in jobs {
        let stored = world.jobs.get(&job.id).map(|record| (&record.queue, &record.task));
        let there = stored.or_else(|| fresh.get(&job.id).map(|&task| (queue, task)));
        answers.push(Enqueued { id: job.id, is_duplicate: there.is_some() });
        match (there, most) {
            (Some(there), _) if there != (queue, &job.task) => return Err(clash(job, queue, there)),
            (Some(_), _) => {}
            (None, Some(max_pending)) if pending + fresh.len() as u64 >= max_pending => {
                return Err(Error::QueueFull { queue: queue.to_string(), max_pending, pending });
            }
            (None, _) => drop(fresh.insert(job.id, &job.task)),
        }
    }
    Ok(answers)
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
    }
}
