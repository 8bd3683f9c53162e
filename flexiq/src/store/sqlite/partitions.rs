//! Partitions: which of them may start something, and whose turn it is.
//!
//! Each is set right at the end of the step that changed its jobs, its leases or its limits, or when time opens its gate;
//! so a claim finds those that are open in an order of their own, however many are shut.

use std::collections::VecDeque;

use rusqlite::{Connection, params};

use super::codes::read_id;
use super::gates::{Passage, StoredGate};
use super::heads::{Key, OpenLane, Reads};
use super::lanes::{Lane, LaneId, QueueId};
use super::write::Write;
use crate::clock::Timestamp;
use crate::name::Name;
use crate::store::types::Claimed;

/// At most this many partitions are looked at again in one step.
pub(super) const MOST_REOPENED: usize = 1_000;
/// As many as one claim may start.
const MOST_STARTED: i64 = 1_000;

/// Sets a partition right: the place of its head, its turn, and how much its gate lets start now. One of which nothing
/// is left goes.
pub(super) fn settle(
    connection: &Connection,
    (queue, id): (QueueId, LaneId),
    lane: &Lane,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let (ready, running, was_startable, turn, jobs): (i64, i64, i64, i64, i64) = connection
        .prepare_cached(include_str!("sql/partition_read.sql"))?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
    let mut settled = connection.prepare_cached(include_str!("sql/partition_settled.sql"))?;
    let startable = if ready == 0 {
        if jobs == 0 {
            connection.prepare_cached("DELETE FROM flexiq_lanes WHERE lane = ?1")?.execute([id])?;
        } else {
            settled.execute(params![
                id,
                None::<i64>,
                None::<i64>,
                None::<i64>,
                None::<i64>,
                0,
                None::<i64>
            ])?;
        }
        0
    } else {
        let head = Reads::prepare(connection)?.first(id)?;
        let gate = StoredGate::of_partition(connection, queue, &lane.task, &lane.partition, running)?;
        let wanted = u32::try_from(ready.min(MOST_STARTED)).unwrap_or(u32::MAX);
        let passage = Passage::ask_exactly(gate, connection, wanted, now)?;
        let opens_at = passage.opens_at().map(Timestamp::as_millis);
        let startable = i64::from(passage.room());
        settled.execute(params![id, turn, head.rank, head.due_at, head.id, startable, opens_at])?;
        startable
    };
    if startable != was_startable {
        connection
            .prepare_cached(
                "UPDATE flexiq_partitioned SET startable = startable + ?3 WHERE queue = ?1 AND task = ?2",
            )?
            .execute(params![queue, &*lane.task, startable - was_startable])?;
    }
    Ok(())
}

/// Looks again at partitions whose gate time has opened, and at those for which what holds for each was changed; answers
/// whether more are left.
pub(super) fn reopen(write: &mut Write<'_>, queue: QueueId) -> rusqlite::Result<bool> {
    let opened: Vec<LaneId> = write
        .connection
        .prepare_cached(
            "SELECT lane FROM flexiq_lanes INDEXED BY flexiq_lanes_opening
             WHERE queue = ?1 AND opens_at IS NOT NULL AND opens_at <= ?2 ORDER BY opens_at LIMIT ?3",
        )?
        .query_map(params![queue, write.now.as_millis(), MOST_REOPENED as i64], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for lane in &opened {
        write.resettle(queue, *lane)?;
    }
    Ok(reopen_each(write, queue)? || opened.len() == MOST_REOPENED)
}

/// Goes on where what holds for each partition of a task was changed.
fn reopen_each(write: &mut Write<'_>, queue: QueueId) -> rusqlite::Result<bool> {
    let tasks: Vec<(String, String)> = write
        .connection
        .prepare_cached(
            "SELECT task, reopens FROM flexiq_partitioned INDEXED BY flexiq_partitioned_reopening
             WHERE queue = ?1 AND reopens IS NOT NULL",
        )?
        .query_map([queue], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut has_more = false;
    for (task, after) in tasks {
        let shut: Vec<(LaneId, String)> = write
            .connection
            .prepare_cached(include_str!("sql/partition_reopens.sql"))?
            .query_map(params![queue, task, after, MOST_REOPENED as i64], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<rusqlite::Result<_>>()?;
        for (lane, _) in &shut {
            write.resettle(queue, *lane)?;
        }
        let next = shut.last().filter(|_| shut.len() == MOST_REOPENED).map(|(_, partition)| partition);
        has_more |= next.is_some();
        write
            .connection
            .prepare_cached("UPDATE flexiq_partitioned SET reopens = ?3 WHERE queue = ?1 AND task = ?2")?
            .execute(params![queue, task, next])?;
    }
    Ok(has_more)
}

/// Has all partitions of a task looked at again, step by step: what holds for each was changed.
pub(super) fn reopen_later(connection: &Connection, task: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE flexiq_partitioned SET reopens = '' WHERE task = ?1")?
        .execute([task])
        .map(drop)
}

/// The order of turns: the priority of the head first, then the turn, then the head's age.
type Turn = (i32, i64, i64, [u8; 16]);

/// A partition that a claim has looked at.
struct OpenPartition {
    lane: OpenLane,
    passage: Passage,
    turn: i64,
}

/// The partitions of one task, as a claim takes from them by turns.
pub(super) struct OpenTurns {
    queue: QueueId,
    name: Name,
    /// The index of its task among the waiting ones,
    pub(super) task: usize,
    /// and of its task's room.
    pub(super) room: usize,
    served: i64,
    was_served: i64,
    /// Read, and not looked at.
    standing: VecDeque<(Turn, LaneId, String, i64)>,
    /// Those after this one are not read; `None` if none are left.
    after: Option<Turn>,
    chunk: usize,
    /// Looked at, and something may start: sorted by turns, the next last.
    open: Vec<(Turn, OpenPartition)>,
    /// Looked at, and nothing more may start.
    done: Vec<OpenPartition>,
}

impl OpenTurns {
    pub(super) fn new(queue: QueueId, name: Name, (task, room): (usize, usize), served: i64) -> Self {
        Self {
            queue,
            name,
            task,
            room,
            served,
            was_served: served,
            standing: VecDeque::new(),
            after: Some((i32::MIN, i64::MIN, i64::MIN, [0; 16])),
            chunk: 8,
            open: Vec::new(),
            done: Vec::new(),
        }
    }

    /// The place of the job whose turn it is, if there is one.
    pub(super) fn head(&mut self, write: &Write<'_>, reads: &mut Reads<'_>) -> rusqlite::Result<Option<Key>> {
        loop {
            if self.standing.is_empty() {
                self.read_on(write.connection)?;
            }
            let open = self.open.last().map(|(turn, _)| *turn);
            match self.standing.front() {
                Some((turn, ..)) if open.is_none_or(|open| *turn < open) => self.look(write, reads)?,
                _ => break,
            }
        }
        Ok(self.open.last().map(|((rank, _, due_at, id), _)| Key { rank: *rank, due_at: *due_at, id: *id }))
    }

    /// Reads the next partitions in the order of their turns.
    fn read_on(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some((rank, turn, due_at, id)) = self.after else { return Ok(()) };
        let mut statement = connection.prepare_cached(include_str!("sql/claim_turns.sql"))?;
        let mut rows =
            statement.query(params![self.queue, &*self.name, rank, turn, due_at, id, self.chunk as i64])?;
        while let Some(row) = rows.next()? {
            let turn = (row.get(0)?, row.get(1)?, row.get(2)?, read_id(row, 3)?);
            self.standing.push_back((turn, row.get(4)?, row.get(5)?, row.get(6)?));
        }
        self.after =
            self.standing.back().filter(|_| self.standing.len() == self.chunk).map(|(turn, ..)| *turn);
        self.chunk = (self.chunk * 4).min(256);
        Ok(())
    }

    /// Looks at the gate of the next partition that is read.
    fn look(&mut self, write: &Write<'_>, reads: &mut Reads<'_>) -> rusqlite::Result<()> {
        let Some(((_, turn, ..), id, partition, ready)) = self.standing.pop_front() else { return Ok(()) };
        let running = write
            .connection
            .prepare_cached("SELECT running FROM flexiq_lanes WHERE lane = ?1")?
            .query_row([id], |row| row.get(0))?;
        let gate = StoredGate::of_partition(write.connection, self.queue, &self.name, &partition, running)?;
        let wanted = u32::try_from(ready.min(MOST_STARTED)).unwrap_or(u32::MAX);
        let passage = Passage::ask(gate, write.connection, wanted, write.now)?;
        let mut lane = OpenLane::new(id, partition, self.task, self.room, ready);
        lane.chunk = 2;
        self.put(OpenPartition { lane, passage, turn }, reads)
    }

    /// Puts a partition where its turn stands, or away if nothing more of it may start.
    fn put(&mut self, mut partition: OpenPartition, reads: &mut Reads<'_>) -> rusqlite::Result<()> {
        let head = match partition.passage.room() {
            0 => None,
            _ => partition.lane.head(reads)?,
        };
        let Some(Key { rank, due_at, id }) = head else {
            self.done.push(partition);
            return Ok(());
        };
        let turn = (rank, partition.turn, due_at, id);
        let at = self.open.partition_point(|(other, _)| *other > turn);
        self.open.insert(at, (turn, partition));
        Ok(())
    }

    /// Takes the job whose turn it is.
    pub(super) fn take(
        &mut self,
        write: &mut Write<'_>,
        reads: &mut Reads<'_>,
        task: &Name,
    ) -> rusqlite::Result<Option<Claimed>> {
        let Some((_, mut partition)) = self.open.pop() else { return Ok(None) };
        let Some(mut job) = partition.lane.take(write, reads, task)? else { return Ok(None) };
        job.is_capped = partition.passage.is_capped();
        partition.passage.take();
        self.served += 1;
        partition.turn = 2 * self.served + 1;
        self.put(partition, reads)?;
        Ok(Some(job))
    }

    /// Charges the gates that were gone through, and answers what was taken of each lane. Those that were found shut are
    /// set right with the rest.
    pub(super) fn charge(self, write: &mut Write<'_>) -> rusqlite::Result<Vec<(LaneId, i64)>> {
        if self.served != self.was_served {
            write.connection.prepare_cached(include_str!("sql/claim_served.sql"))?.execute(params![
                self.queue,
                &*self.name,
                self.served
            ])?;
        }
        let mut taken = Vec::new();
        for OpenPartition { lane, passage, turn } in
            self.open.into_iter().map(|(_, partition)| partition).chain(self.done)
        {
            let is_shut = passage.room() == 0;
            passage.charge(write.connection, write.now)?;
            if lane.taken > 0 {
                write
                    .connection
                    .prepare_cached("UPDATE flexiq_lanes SET turn = ?2 WHERE lane = ?1")?
                    .execute(params![lane.id, turn])?;
                taken.push((lane.id, lane.taken));
            } else if is_shut {
                write.ledger.touches(self.queue, lane.id);
            }
        }
        Ok(taken)
    }
}

impl Write<'_> {
    /// Sets a partition right whose limits have changed, or whose gate time has opened.
    pub(super) fn resettle(&mut self, queue: QueueId, lane: LaneId) -> rusqlite::Result<()> {
        let name = self.lanes.name(self.connection, lane)?;
        settle(self.connection, (queue, lane), name, self.now)
    }
}

/// The partitions of one name, in all queues.
pub(super) fn lanes_of(
    connection: &Connection,
    task: &str,
    partition: &str,
) -> rusqlite::Result<Vec<(QueueId, LaneId)>> {
    connection
        .prepare_cached(
            "SELECT lanes.queue, lanes.lane FROM flexiq_queues AS queues
             JOIN flexiq_lanes AS lanes ON lanes.queue = queues.queue AND lanes.task = ?1 AND lanes.partition = ?2",
        )?
        .query_map([task, partition], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}
