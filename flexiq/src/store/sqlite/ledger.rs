//! How many jobs of each lane are in which state, kept up once per transaction instead of once per job.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, params};

use super::codes::state;
use super::lanes::{LaneId, Lanes, QueueId};
use super::partitions::settle;
use crate::clock::Timestamp;

const STATES: usize = 7;

/// What the open transaction has moved and not yet written to `flexiq_lanes`, `flexiq_partitioned` and `flexiq_queues`.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// In the order of the file.
    moved: BTreeMap<LaneId, Moved>,
    /// The lanes that hold fewer pending jobs now, which may be room for a producer.
    pub(super) left: Left,
}

/// Lanes that pending jobs have left.
pub(super) type Left = BTreeSet<LaneId>;

#[derive(Clone, Copy, Debug)]
struct Moved {
    queue: QueueId,
    by_state: [i64; STATES],
}

impl Moved {
    fn pending(&self) -> i64 {
        self.by_state[usize::from(state::SCHEDULED)] + self.by_state[usize::from(state::READY)]
    }
}

impl Ledger {
    /// A job of this lane is now in this state.
    pub(super) fn enters(&mut self, queue: QueueId, lane: LaneId, state: u8) {
        self.adds(queue, lane, state, 1);
    }

    /// A job of this lane is no longer in this state.
    pub(super) fn leaves(&mut self, queue: QueueId, lane: LaneId, state: u8) {
        self.adds(queue, lane, state, -1);
    }

    /// So many jobs of this lane have come into this state, or left it.
    pub(super) fn adds(&mut self, queue: QueueId, lane: LaneId, state: u8, jobs: i64) {
        let moved = self.moved.entry(lane).or_insert(Moved { queue, by_state: [0; STATES] });
        moved.by_state[usize::from(state)] += jobs;
    }

    /// This partition is set right when what has moved is written down.
    pub(super) fn touches(&mut self, queue: QueueId, lane: LaneId) {
        self.adds(queue, lane, state::READY, 0);
    }

    /// Whether the file does not yet say which lanes have something ready, and which partitions may start it.
    pub(super) fn hides_ready(&self, connection: &Connection, lanes: &mut Lanes) -> rusqlite::Result<bool> {
        for (lane, moved) in &self.moved {
            if moved.by_state[usize::from(state::READY)] != 0
                || !lanes.name(connection, *lane)?.partition.is_empty()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leases of each lane of a queue that are not written down yet: more, or fewer.
    pub(super) fn running(&self, queue: QueueId) -> impl Iterator<Item = (LaneId, i64)> {
        let moved = self.moved.iter().filter(move |(_, moved)| moved.queue == queue);
        moved
            .map(|(lane, moved)| (*lane, moved.by_state[usize::from(state::RUNNING)]))
            .filter(|(_, leases)| *leases != 0)
    }

    /// Pending jobs of a queue that are not written down yet: more, or fewer.
    pub(super) fn pending(&self, queue: QueueId) -> i64 {
        let moved = self.moved.values().filter(|moved| moved.queue == queue);
        moved.map(Moved::pending).sum()
    }

    /// Jobs of a lane that are pending and not written down yet: more, or fewer.
    pub(super) fn pending_of(&self, lane: LaneId) -> i64 {
        self.moved.get(&lane).map_or(0, Moved::pending)
    }

    /// Writes down what has moved.
    pub(super) fn write(
        &mut self,
        connection: &Connection,
        lanes: &mut Lanes,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        if self.moved.is_empty() {
            return Ok(());
        }
        let mut queues: HashMap<QueueId, [i64; STATES]> = HashMap::new();
        let mut lane_moved = connection.prepare_cached(include_str!("sql/lane_moved.sql"))?;
        let mut lane_moved_ready = connection.prepare_cached(include_str!("sql/lane_moved_ready.sql"))?;
        for (lane, Moved { queue, by_state }) in std::mem::take(&mut self.moved) {
            let [scheduled, ready, running, succeeded, dead, cancelled, expired] = by_state;
            if scheduled + ready < 0 {
                self.left.insert(lane);
            }
            // Without a change in `ready`, its partial index is left alone.
            if ready == 0 {
                lane_moved.execute(params![lane, scheduled, running, succeeded, dead, cancelled, expired])?;
            } else {
                lane_moved_ready
                    .execute(params![lane, scheduled, ready, running, succeeded, dead, cancelled, expired])?;
            }
            let name = lanes.name(connection, lane)?;
            if !name.partition.is_empty() {
                connection.prepare_cached(include_str!("sql/partitioned_moved.sql"))?.execute(params![
                    queue,
                    &*name.task,
                    scheduled,
                    ready,
                    running,
                    succeeded,
                    dead,
                    cancelled,
                    expired
                ])?;
                settle(connection, (queue, lane), name, now)?;
            }
            let total = queues.entry(queue).or_default();
            for (sum, moved) in total.iter_mut().zip(by_state) {
                *sum += moved;
            }
        }
        for (queue, total) in queues {
            let [scheduled, ready, running, succeeded, dead, cancelled, expired] = total;
            let moved = [scheduled + ready, running, succeeded, dead, cancelled, expired];
            if moved != [0; 6] {
                let [pending, running, succeeded, dead, cancelled, expired] = moved;
                connection
                    .prepare_cached(include_str!("sql/queue_moved.sql"))?
                    .execute(params![queue, pending, running, succeeded, dead, cancelled, expired])?;
            }
        }
        Ok(())
    }
}
