//! The numbers of queues and lanes, remembered by the writer: a name is looked up in the file once.
//!
//! Rows of `flexiq_queues` and `flexiq_lanes` are never renumbered, and no number comes twice, so what is remembered of a
//! number stays true, also when another process writes. A partition's row goes when nothing is left of it: the number of
//! a partition is looked up each time.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::codes::unreadable;
use crate::job::JobId;
use crate::name::Name;

/// The number of a queue.
pub(super) type QueueId = i64;
/// The number of a lane.
pub(super) type LaneId = i64;

/// More than this many lanes are forgotten together: partitions have no bound.
const REMEMBERED: usize = 20_000;

/// What the writer remembers of queues and lanes.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    queues: HashMap<Name, QueueId>,
    lanes: HashMap<LaneId, Lane>,
    /// Of lanes without a partition.
    by_name: HashMap<QueueId, HashMap<Name, LaneId>>,
    /// The lanes of jobs that were leased here: a hint, which spares a finish the look for it.
    leased: HashMap<JobId, LaneId>,
}

/// A lane: the jobs of one task, or of one partition of it.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) queue: Name,
    pub(super) task: Name,
    pub(super) partition: Arc<str>,
}

impl Lanes {
    /// Forgets all: a transaction that wrote some of them was undone.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The number of a queue, if it is known.
    pub(super) fn find_queue(
        &mut self,
        connection: &Connection,
        name: &Name,
    ) -> rusqlite::Result<Option<QueueId>> {
        if let Some(&queue) = self.queues.get(name) {
            return Ok(Some(queue));
        }
        let found: Option<QueueId> = connection
            .prepare_cached("SELECT queue FROM flexiq_queues WHERE name = ?1")?
            .query_row([&**name], |row| row.get(0))
            .optional()?;
        if let Some(queue) = found {
            self.queues.insert(name.clone(), queue);
        }
        Ok(found)
    }

    /// The number of a queue, which is made known if it is not.
    pub(super) fn queue(&mut self, connection: &Connection, name: &Name) -> rusqlite::Result<QueueId> {
        if let Some(queue) = self.find_queue(connection, name)? {
            return Ok(queue);
        }
        connection.prepare_cached("INSERT INTO flexiq_queues (name) VALUES (?1)")?.execute([&**name])?;
        let queue = connection.last_insert_rowid();
        self.queues.insert(name.clone(), queue);
        Ok(queue)
    }

    /// The number of a lane, which is made if there is none.
    pub(super) fn lane(
        &mut self,
        connection: &Connection,
        queue: (&Name, QueueId),
        task: &Name,
        partition: &str,
    ) -> rusqlite::Result<LaneId> {
        if partition.is_empty()
            && let Some(&lane) = self.by_name.get(&queue.1).and_then(|tasks| tasks.get(task))
        {
            return Ok(lane);
        }
        let found: Option<LaneId> = connection
            .prepare_cached(
                "SELECT lane FROM flexiq_lanes WHERE queue = ?1 AND task = ?2 AND partition = ?3",
            )?
            .query_row(params![queue.1, &**task, partition], |row| row.get(0))
            .optional()?;
        let lane = match found {
            Some(lane) => lane,
            None => {
                let lane = next_number(connection)?;
                connection
                    .prepare_cached(
                        "INSERT INTO flexiq_lanes (lane, queue, task, partition) VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![lane, queue.1, &**task, partition])?;
                if !partition.is_empty() {
                    connection
                        .prepare_cached(
                            "INSERT OR IGNORE INTO flexiq_partitioned (queue, task) VALUES (?1, ?2)",
                        )?
                        .execute(params![queue.1, &**task])?;
                }
                lane
            }
        };
        self.remember(
            lane,
            queue.1,
            Lane { queue: queue.0.clone(), task: task.clone(), partition: partition.into() },
        );
        Ok(lane)
    }

    /// What a number means.
    pub(super) fn name(&mut self, connection: &Connection, lane: LaneId) -> rusqlite::Result<&Lane> {
        if !self.lanes.contains_key(&lane) {
            let (id, found) =
                connection.prepare_cached(include_str!("sql/lane_name.sql"))?.query_row([lane], |row| {
                    Ok((
                        row.get(0)?,
                        Lane {
                            queue: read_name("queue", &row.get::<_, String>(1)?)?,
                            task: read_name("task", &row.get::<_, String>(2)?)?,
                            partition: row.get(3)?,
                        },
                    ))
                })?;
            self.remember(lane, id, found);
        }
        Ok(&self.lanes[&lane])
    }

    /// A job of this lane is leased, and will mostly be finished here, too.
    pub(super) fn expect_finish(&mut self, job: JobId, lane: LaneId) {
        if self.leased.len() >= REMEMBERED {
            self.leased.clear();
        }
        self.leased.insert(job, lane);
    }

    /// The lane that a job was leased from, if it was here and is not finished.
    pub(super) fn leased(&self, job: JobId) -> Option<LaneId> {
        self.leased.get(&job).copied()
    }

    /// The same, when the job is finished.
    pub(super) fn finishes(&mut self, job: JobId) -> Option<LaneId> {
        self.leased.remove(&job)
    }

    fn remember(&mut self, id: LaneId, queue: QueueId, lane: Lane) {
        if self.lanes.len() >= REMEMBERED {
            self.lanes.clear();
            self.by_name.clear();
        }
        if lane.partition.is_empty() {
            self.by_name.entry(queue).or_default().insert(lane.task.clone(), id);
        }
        self.lanes.insert(id, lane);
    }
}

/// A number that no lane has had.
fn next_number(connection: &Connection) -> rusqlite::Result<LaneId> {
    connection
        .prepare_cached(
            "INSERT INTO flexiq_meta (key, value) VALUES ('lanes', 1)
             ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING value",
        )?
        .query_row([], |row| row.get(0))
}

/// A name that this store has written.
pub(super) fn read_name(what: &'static str, name: &str) -> rusqlite::Result<Name> {
    Name::new(what, name).map_err(|error| unreadable(error.to_string()))
}
