//! wait, called and ended: whoever waits looks again at each change, and when time alone may have changed something.
//!
//! So the model wakes too often rather than never: one bell wakes all that could use it.

use std::collections::BTreeSet;
use std::time::Duration;

use flexiq::State;
use flexiq::internals::{JobKey, Name, Stored, Timestamp, Wait, Wake, WorkerId};

use super::record::{Cancel, Record};
use super::world::World;
use super::{ModelStore, gates, house, read, schedules};

/// An operator may step the clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

impl ModelStore {
    /// Looks again at each change until there is an answer.
    pub(super) async fn until<T>(&self, look: impl Fn(&World, Timestamp) -> Option<T>) -> T {
        loop {
            // Listen first, then look: a change in between is heard.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(answer) = self.look(|world, now| look(world, now)) {
                return answer;
            }
            changed.await;
        }
    }
}

pub(super) async fn wait(store: &ModelStore, wait: &Wait) -> Wake {
    loop {
        let changed = store.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let (queues, next) = store.look(|world, now| (to_claim(world, now, wait), next(world, now, wait)));
        if !queues.is_empty() {
            return Wake { queues };
        }
        let soonest = next.unwrap_or(Timestamp::from_millis(i64::MAX)).min(store.clock.now() + LONGEST_SLEEP);
        tokio::select! {
            () = changed => {}
            () = store.clock.sleep_until(soonest) => {}
        }
    }
}

/// The queues in which a claim would do something.
fn to_claim(world: &World, now: Timestamp, wait: &Wait) -> Vec<Name> {
    let is_useful = |queue: &Name, tasks: &[Name]| {
        tasks.iter().any(|task| is_startable(world, now, queue, task))
            || moment(world, queue).is_some_and(|moment| moment <= now)
    };
    wait.queues
        .iter()
        .filter(|(queue, tasks)| is_useful(queue, tasks))
        .map(|(queue, _)| queue.clone())
        .collect()
}

/// The partitions of a task of which something is ready; "" is what has none.
fn ready_partitions<'a>(world: &'a World, queue: &'a Name, task: &'a Name) -> BTreeSet<&'a str> {
    let is_ready = |record: &&Record| record.state == State::Ready && record.task == *task;
    world.of_queue(queue).filter(is_ready).map(|record| &*record.partition).collect()
}

fn is_startable(world: &World, now: Timestamp, queue: &Name, task: &Name) -> bool {
    gates::is_task_open(world, now, queue, task)
        && ready_partitions(world, queue, task)
            .into_iter()
            .any(|partition| gates::is_partition_open(world, now, queue, task, partition))
}

/// When time alone may next move a job of the queue, or a schedule is due.
fn moment(world: &World, queue: &Name) -> Option<Timestamp> {
    let lapse = world.of_queue(queue).filter_map(house::lapse).min();
    let lapse = lapse.map(|lapse| world.guards.reap_after(queue).map_or(lapse, |after| after.max(lapse)));
    let due = world.of_queue(queue).filter_map(house::due).min();
    let expiry = world.of_queue(queue).filter_map(house::expiry).min();
    [lapse, due, expiry, schedules::moment(world, queue)].into_iter().flatten().min()
}

/// When time alone may next make a claim useful.
fn next(world: &World, now: Timestamp, wait: &Wait) -> Option<Timestamp> {
    let moments = wait.queues.iter().filter_map(|(queue, _)| moment(world, queue));
    let openings = wait.queues.iter().flat_map(|(queue, tasks)| {
        tasks
            .iter()
            .flat_map(|task| {
                let partitions = ready_partitions(world, queue, task);
                partitions.into_iter().map(move |partition| (task, partition))
            })
            .filter_map(|(task, partition)| gates::opens_at(world, now, queue, task, partition))
            .collect::<Vec<_>>()
    });
    moments.chain(openings).min()
}

/// Whether a job of this worker was cancelled and the worker has not learned it.
pub(super) fn is_called(world: &World, worker: WorkerId) -> bool {
    world.jobs.values().any(|record| record.is_held(worker, record.runs) && record.cancel == Cancel::Asked)
}

/// The answer to who waits for the end of a job, once there is one.
pub(super) fn end_of(world: &World, key: &JobKey) -> Option<Option<Stored>> {
    match world.jobs.get(&key.id).filter(|record| record.queue == key.queue) {
        None => Some(None),
        Some(record) => read::stored(record).map(Some),
    }
}
