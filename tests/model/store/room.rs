//! room: the lines of producers that wait until a queue, or a partition of it, takes their jobs.

use flexiq::Error;
use flexiq::internals::{Enqueue, KEPT_IN_LINE, LONGEST_STAND, Name, NewJob, ProducerId, Scope, Timestamp};

use super::ModelStore;
use super::enqueue::new_jobs;
use super::record::Record;
use super::world::World;

/// A producer that stands in line.
#[derive(Debug)]
pub(super) struct Stand {
    producer: ProducerId,
    queue: Name,
    /// What it waits for: the queue, or one partition.
    scope: Scope,
    jobs: u64,
    declared: Option<u64>,
    until: Timestamp,
}

/// The pending jobs of a queue, or of a partition in it.
pub(super) fn pending(world: &World, scope: &Scope, queue: &Name) -> u64 {
    let is_in = |record: &&Record| match scope {
        Scope::Partition(task, partition) => record.task == *task && record.partition == *partition,
        _ => true,
    };
    world.of_queue(queue).filter(|record| record.state.is_pending()).filter(is_in).count() as u64
}

/// What those want who stand before a producer.
pub(super) fn kept(
    world: &World,
    now: Timestamp,
    queue: &Name,
    scope: &Scope,
    producer: Option<ProducerId>,
) -> u64 {
    let in_line = world.line.iter().filter(|stand| stand.queue == *queue && stand.scope == *scope);
    let before = in_line.take_while(|stand| Some(stand.producer) != producer);
    before.filter(|stand| stand.until > now).map(|stand| stand.jobs).sum()
}

/// Lets the producer of a refused batch stand in line, and answers why it was refused.
pub(super) fn stand(
    world: &mut World,
    now: Timestamp,
    batch: &Enqueue,
    producer: ProducerId,
    full: Error,
) -> Error {
    let queue = batch.queue.clone();
    let (scope, max_pending) = match &full {
        Error::QueueFull { max_pending, .. } => (Scope::Queue(queue.clone()), *max_pending),
        Error::PartitionFull { task, partition, max_pending, .. } => {
            let task = Name::new("task", task).expect("a task that was enqueued");
            (Scope::Partition(task, partition.clone()), *max_pending)
        }
        _ => return full,
    };
    let is_in = |job: &&NewJob| match &scope {
        Scope::Partition(task, partition) => job.task == *task && job.partition == *partition,
        _ => true,
    };
    let jobs = new_jobs(world, now, batch).into_iter().filter(is_in).count() as u64;
    if jobs > max_pending {
        return Error::Invalid {
            what: "batch that waits for room".into(),
            given: format!("{jobs} new jobs at once"),
            accepted: format!("at most {max_pending}, which is max_pending: send several, or raise it"),
        };
    }
    let declared = match scope {
        Scope::Queue(_) => batch.max_pending,
        _ => batch.jobs.iter().find(is_in).and_then(|job| job.max_pending_per_partition),
    };
    world.line.retain(|stand| stand.until > now);
    let stand = Stand { producer, queue, scope, jobs, declared, until: now + KEPT_IN_LINE };
    match world.line.iter().position(|other| other.producer == producer) {
        Some(index) if world.line[index].scope == stand.scope => world.line[index] = stand,
        Some(index) => {
            world.line.remove(index);
            world.line.push(stand);
        }
        None => world.line.push(stand),
    }
    full
}

/// Takes a producer out of its line.
pub(super) fn leave(world: &mut World, producer: ProducerId) {
    world.line.retain(|stand| stand.producer != producer);
}

pub(super) async fn room(store: &ModelStore, queue: &Name, producer: ProducerId) {
    let told = store.until(|world, now| has_room(world, now, queue, producer).then_some(()));
    tokio::select! {
        () = told => {}
        () = store.clock.sleep(LONGEST_STAND) => {}
    }
}

/// Whether there is room for a producer behind those before it. One that stands in no line may as well ask.
fn has_room(world: &World, now: Timestamp, queue: &Name, producer: ProducerId) -> bool {
    let Some(stand) = world.line.iter().find(|stand| stand.producer == producer) else { return true };
    let most = world.gates.max_pending(stand.scope.clone()).or(stand.declared);
    let taken = pending(world, &stand.scope, queue) + kept(world, now, queue, &stand.scope, Some(producer));
    most.is_none_or(|most| taken + stand.jobs <= most)
}
