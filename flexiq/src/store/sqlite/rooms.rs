//! The producers of this process that wait for room, and are told when it is their turn.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::Notify;

use super::gates::gate_name;
use super::lanes::Lanes;
use super::ledger::Left;
use super::news::Stand;
use super::room::with_room;
use crate::clock::Timestamp;
use crate::name::Name;
use crate::store::types::ProducerId;

/// A line: its queue, and its partition as `task:partition`, or nothing.
type Line = (Name, String);

/// The producers of this process that wait for room.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    waiting: Mutex<HashMap<[u8; 16], Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Where it stands, once it was refused.
    line: Option<Line>,
    /// It is on its way to enqueue once more.
    is_told: bool,
    notify: Arc<Notify>,
}

impl Rooms {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a producer is told, from now on. What it is told while it does not listen is kept.
    pub(super) fn enter(&self, producer: ProducerId) -> Arc<Notify> {
        self.lock().entry(*producer.as_bytes()).or_default().notify.clone()
    }

    /// A producer waits no more; false if it did not.
    pub(super) fn forget(&self, producer: ProducerId) -> bool {
        self.lock().remove(producer.as_bytes()).is_some()
    }

    /// A producer was refused, and stands in a line.
    pub(super) fn stands(&self, Stand { producer, queue, gate }: Stand) {
        if let Some(waiting) = self.lock().get_mut(producer.as_bytes()) {
            (waiting.line, waiting.is_told) = (Some((queue, gate)), false);
        }
    }

    /// Tells those for whom there is room where jobs of these lanes have left it.
    pub(super) fn look_at(
        &self,
        left: &Left,
        connection: &Connection,
        lanes: &mut Lanes,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        if left.is_empty() || self.lock().is_empty() {
            return Ok(());
        }
        let mut lines = BTreeSet::new();
        for &lane in left {
            // A partition of which nothing is left has no row any more.
            let Ok(lane) = lanes.name(connection, lane) else { return self.look(connection, lanes, now) };
            lines.insert((lane.queue.clone(), String::new()));
            if !lane.partition.is_empty() {
                lines.insert((lane.queue.clone(), gate_name(&lane.task, &lane.partition)));
            }
        }
        let awaited = self.lines();
        self.tell(lines.intersection(&awaited), connection, lanes, now)
    }

    /// Tells all for whom there is room.
    pub(super) fn look(
        &self,
        connection: &Connection,
        lanes: &mut Lanes,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        self.tell(self.lines().iter(), connection, lanes, now)
    }

    fn lines(&self) -> BTreeSet<Line> {
        self.lock().values().filter_map(|waiting| waiting.line.clone()).collect()
    }

    fn tell<'a>(
        &self,
        lines: impl Iterator<Item = &'a Line>,
        connection: &Connection,
        lanes: &mut Lanes,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        for (queue, gate) in lines {
            let found = with_room(connection, lanes, (queue, gate), now)?;
            let mut all = self.lock();
            for producer in found {
                if let Some(waiting) = all.get_mut(&producer).filter(|waiting| !waiting.is_told) {
                    waiting.is_told = true;
                    waiting.notify.notify_one();
                }
            }
        }
        Ok(())
    }
}
