//! Partitions of one task take turns. A turn lasts as long as something of the partition is ready.

use std::collections::{BTreeMap, BTreeSet};

use flexiq::State;
use flexiq::internals::Name;

use super::record::Record;
use super::world::World;

/// Whose turn it is among the partitions of one task in one queue.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    /// Starts of partitions so far.
    served: u64,
    /// Of each partition of which something is ready: the least is next.
    turns: BTreeMap<String, u64>,
}

impl Rotation {
    /// The turn of a partition of which something is ready.
    pub(super) fn turn(&self, partition: &str) -> u64 {
        self.turns[partition]
    }

    /// A job of the partition has started: now it is the last.
    pub(super) fn serve(&mut self, partition: &str) {
        self.served += 1;
        self.turns.insert(partition.into(), 2 * self.served + 1);
    }
}

/// Gives a turn to who has come, before the one that was served last, and forgets who has gone.
pub(super) fn settle(world: &mut World) {
    let mut ready: BTreeMap<(Name, Name), BTreeSet<&str>> = BTreeMap::new();
    let is_ready = |record: &&Record| record.state == State::Ready && !record.partition.is_empty();
    for record in world.jobs.values().filter(is_ready) {
        let task = (record.queue.clone(), record.task.clone());
        ready.entry(task).or_default().insert(&record.partition);
    }
    for (task, rotation) in &mut world.rotations {
        let there = ready.get(task);
        rotation.turns.retain(|partition, _| there.is_some_and(|there| there.contains(partition.as_str())));
    }
    for (task, partitions) in ready {
        let rotation = world.rotations.entry(task).or_default();
        for partition in partitions {
            rotation.turns.entry(partition.into()).or_insert(2 * rotation.served);
        }
    }
}
