//! The gates of a queue and of the tasks and partitions that wait in it, as a claim and a bell see them.
//!
//! Policy decides; here is read what it decides by, and written what a start charges. A lane whose gate is shut costs one
//! look, however long it is, and a queue whose own gate is shut costs none of its tasks a look.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::lanes::{Lane, LaneId, Lanes, QueueId, read_name};
use super::ledger::Ledger;
use super::limits::rates;
use super::starts::Starts;
use crate::clock::Timestamp;
use crate::name::Name;
use crate::policy::{Gate, Rate, Shut, Verdict};

/// The column `scope` of limits and declarations.
pub(super) mod scope {
    pub(crate) const QUEUE: u8 = 0;
    pub(crate) const TASK: u8 = 1;
    pub(crate) const EACH_PARTITION: u8 = 2;
    pub(crate) const PARTITION: u8 = 3;
}

/// The name of a partition's gate and of its limits. No task's name has a colon.
pub(super) fn gate_name(task: &str, partition: &str) -> String {
    format!("{task}:{partition}")
}

/// Task and partition of the gate or the limits of one partition.
pub(super) fn parts_of(name: &str) -> Option<(&str, &str)> {
    name.split_once(':')
}

/// Whether a gate is one of a partition.
pub(super) fn is_of_partition(gate: &str) -> bool {
    parts_of(gate).is_some()
}

/// A lane in which something is ready that has no partition.
pub(super) struct WaitingLane {
    pub(super) id: LaneId,
    pub(super) ready: i64,
    /// The index of its task among the waiting ones.
    pub(super) task: usize,
}

/// A task of which something is ready in partitions.
pub(super) struct WaitingTurns {
    pub(super) name: Name,
    pub(super) ready: i64,
    /// How much of it the gates of the partitions let start, when each was last looked at.
    pub(super) startable: i64,
    /// Starts so far, by which turns are counted.
    pub(super) served: i64,
    /// The index of the task among the waiting ones.
    pub(super) task: usize,
}

/// A task of which something is ready.
pub(super) struct WaitingTask {
    pub(super) name: Name,
    /// Jobs that are ready and have no partition.
    pub(super) ready: i64,
    pub(super) gate: Option<StoredGate>,
}

/// All that waits in a queue, and what keeps it waiting.
pub(super) struct Waiting {
    pub(super) gate: Option<StoredGate>,
    pub(super) tasks: Vec<WaitingTask>,
    pub(super) lanes: Vec<WaitingLane>,
    pub(super) turns: Vec<WaitingTurns>,
}

/// A gate, and the leases that its cap counts.
pub(super) struct StoredGate {
    queue: QueueId,
    /// Empty for the gate of the whole queue.
    name: String,
    gate: Gate,
    running: i64,
}

/// Whether something of a task can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing of it is ready.
    Empty,
    Startable,
    /// A gate is shut; what opens by time does so at this moment.
    Shut(Option<Timestamp>),
}

impl Waiting {
    /// Reads it in an open transaction, whose ledger must hide no ready job.
    pub(super) fn read(
        connection: &Connection,
        lanes: &mut Lanes,
        ledger: &Ledger,
        (name, queue): (&Name, QueueId),
    ) -> rusqlite::Result<Self> {
        let holds = holds_of(connection, queue)?;
        let gate = StoredGate::of_queue(connection, name, queue, &holds)?;
        let mut waiting = Self { gate, tasks: vec![], lanes: vec![], turns: vec![] };
        let mut statement = connection.prepare_cached(include_str!("sql/claim_lanes.sql"))?;
        let mut rows = statement.query([queue])?;
        while let Some(row) = rows.next()? {
            let (task, ready) = (row.get_ref(1)?.as_str()?, row.get(2)?);
            let gate = StoredGate::of_task(connection, queue, task, read_gate(row, 3)?, &holds)?;
            waiting.lanes.push(WaitingLane { id: row.get(0)?, ready, task: waiting.tasks.len() });
            waiting.tasks.push(WaitingTask { name: read_name("task", task)?, ready, gate });
        }
        let mut statement = connection.prepare_cached(include_str!("sql/claim_partitioned.sql"))?;
        let mut rows = statement.query([queue])?;
        while let Some(row) = rows.next()? {
            let task = row.get_ref(0)?.as_str()?;
            let known = waiting.tasks.iter().position(|known| known.name.as_str() == task);
            let index = known.unwrap_or(waiting.tasks.len());
            if known.is_none() {
                let gate = StoredGate::of_task(connection, queue, task, read_gate(row, 4)?, &holds)?;
                waiting.tasks.push(WaitingTask { name: read_name("task", task)?, ready: 0, gate });
            }
            waiting.turns.push(WaitingTurns {
                name: waiting.tasks[index].name.clone(),
                ready: row.get(1)?,
                startable: row.get(2)?,
                served: row.get(3)?,
                task: index,
            });
        }
        waiting.count_unwritten(connection, lanes, ledger, queue)?;
        Ok(waiting)
    }

    /// Counts the leases that this very transaction has ended or begun.
    fn count_unwritten(
        &mut self,
        connection: &Connection,
        lanes: &mut Lanes,
        ledger: &Ledger,
        queue: QueueId,
    ) -> rusqlite::Result<()> {
        if let Some(gate) = &mut self.gate {
            gate.running += ledger.running(queue).map(|(_, leases)| leases).sum::<i64>();
        }
        let mut capped: HashMap<&Name, &mut i64> = self
            .tasks
            .iter_mut()
            .filter_map(|task| Some((&task.name, task.gate.as_mut()?)))
            .filter(|(_, gate)| gate.gate.max_concurrent.is_some())
            .map(|(name, gate)| (name, &mut gate.running))
            .collect();
        if capped.is_empty() {
            return Ok(());
        }
        for (lane, leases) in ledger.running(queue) {
            if let Some(running) = capped.get_mut(&lanes.name(connection, lane)?.task) {
                **running += leases;
            }
        }
        Ok(())
    }
}

impl StoredGate {
    /// The gate of a whole queue, if it has one.
    pub(super) fn of_queue(
        connection: &Connection,
        name: &Name,
        queue: QueueId,
        holds: &Holds,
    ) -> rusqlite::Result<Option<Self>> {
        let gate = gate_of(connection, scope::QUEUE, name)?.unwrap_or_default();
        let gate = Gate { held_until: holds.get("").copied(), ..gate };
        if gate.is_none() {
            return Ok(None);
        }
        let running = match gate.max_concurrent {
            Some(_) => connection
                .prepare_cached("SELECT running FROM flexiq_queues WHERE queue = ?1")?
                .query_row([queue], |row| row.get(0))?,
            None => 0,
        };
        Ok(Some(Self { queue, name: String::new(), gate, running }))
    }

    /// The gate of a task in a queue, unless it holds nothing back.
    fn of_task(
        connection: &Connection,
        queue: QueueId,
        task: &str,
        gate: Gate,
        holds: &Holds,
    ) -> rusqlite::Result<Option<Self>> {
        let gate = Gate { held_until: holds.get(task).copied(), ..gate };
        if gate.is_none() {
            return Ok(None);
        }
        let running = match gate.max_concurrent {
            Some(_) => connection
                .prepare_cached(include_str!("sql/gate_running.sql"))?
                .query_row(params![queue, task], |row| row.get(0))?,
            None => 0,
        };
        Ok(Some(Self { queue, name: task.into(), gate, running }))
    }

    /// The gate of a partition of which so many jobs run, unless it holds nothing back.
    pub(super) fn of_partition(
        connection: &Connection,
        queue: QueueId,
        task: &Name,
        partition: &str,
        running: i64,
    ) -> rusqlite::Result<Option<Self>> {
        let name = gate_name(task, partition);
        let gate = connection.prepare_cached(include_str!("sql/gate_partition.sql"))?.query_row(
            params![queue, &**task, name],
            |row| {
                let held_until = row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis);
                Ok(Gate { held_until, ..read_gate(row, 0)? })
            },
        )?;
        Ok((!gate.is_none()).then_some(Self { queue, name, gate, running }))
    }

    /// What it says, and how many leases its cap counts.
    pub(super) fn rules(&self) -> (&Gate, u64) {
        (&self.gate, u64::try_from(self.running).unwrap_or(0))
    }

    /// All that keeps one more start waiting.
    pub(super) fn shut_by(&self, connection: &Connection, now: Timestamp) -> rusqlite::Result<Vec<Shut>> {
        let (gate, running) = self.rules();
        if gate.rates.is_empty() {
            return gate.shut_by(running, now, &mut Starts::unasked(connection));
        }
        let mut starts = Starts::open(connection, self.queue, &self.name)?;
        gate.shut_by(running, now, &mut starts)
    }

    /// How many of `wanted`, at least one, may start.
    pub(super) fn admit(
        &self,
        connection: &Connection,
        wanted: u32,
        now: Timestamp,
    ) -> rusqlite::Result<Verdict> {
        let running = u64::try_from(self.running).unwrap_or(0);
        if self.gate.rates.is_empty() {
            return self.gate.admit(wanted, running, now, &mut Starts::unasked(connection));
        }
        let mut starts = Starts::open(connection, self.queue, &self.name)?;
        self.gate.admit(wanted, running, now, &mut starts)
    }

    /// Charges what has been claimed.
    fn charge(&mut self, connection: &Connection, starts: u32, now: Timestamp) -> rusqlite::Result<()> {
        self.running += i64::from(starts);
        if self.gate.rates.is_empty() {
            return Ok(());
        }
        Starts::open(connection, self.queue, &self.name)?.add(starts, now, &self.gate.rates)
    }
}

/// The gates before a lane's jobs that may hold something back: its queue's, its task's, and its partition's.
pub(super) fn gates_before(
    connection: &Connection,
    queue: QueueId,
    lane: &Lane,
) -> rusqlite::Result<[Option<StoredGate>; 3]> {
    let Lane { queue: queue_name, task, partition } = lane;
    let holds = holds_of(connection, queue)?;
    let of_partition = match partition.is_empty() {
        true => None,
        false => {
            let running = connection
                .prepare_cached(
                    "SELECT running FROM flexiq_lanes WHERE queue = ?1 AND task = ?2 AND partition = ?3",
                )?
                .query_row(params![queue, &**task, &**partition], |row| row.get(0))?;
            StoredGate::of_partition(connection, queue, task, partition, running)?
        }
    };
    Ok([
        StoredGate::of_queue(connection, queue_name, queue, &holds)?,
        task_gate(connection, queue, task, &holds)?,
        of_partition,
    ])
}

/// The gate of a task in a queue, unless it holds nothing back.
pub(super) fn task_gate(
    connection: &Connection,
    queue: QueueId,
    task: &Name,
    holds: &Holds,
) -> rusqlite::Result<Option<StoredGate>> {
    let gate = gate_of(connection, scope::TASK, task)?.unwrap_or_default();
    StoredGate::of_task(connection, queue, task, gate, holds)
}

/// How many of `wanted` may start; without a gate, all.
fn admit(
    gate: Option<&StoredGate>,
    connection: &Connection,
    wanted: u32,
    now: Timestamp,
) -> rusqlite::Result<Verdict> {
    gate.map_or(Ok(Verdict::Open(wanted)), |gate| gate.admit(connection, wanted, now))
}

/// A gate as one claim goes through it: asked first, charged at the end.
pub(super) struct Passage {
    gate: Option<StoredGate>,
    verdict: Verdict,
    taken: u32,
}

impl Passage {
    /// Asks for `wanted`, and for one more: so it is known whether it is still open after them.
    pub(super) fn ask(
        gate: Option<StoredGate>,
        connection: &Connection,
        wanted: u32,
        now: Timestamp,
    ) -> rusqlite::Result<Self> {
        let verdict = admit(gate.as_ref(), connection, wanted.saturating_add(1), now)?;
        Ok(Self { gate, verdict, taken: 0 })
    }

    /// Asks for `wanted` and not for one more.
    pub(super) fn ask_exactly(
        gate: Option<StoredGate>,
        connection: &Connection,
        wanted: u32,
        now: Timestamp,
    ) -> rusqlite::Result<Self> {
        let verdict = admit(gate.as_ref(), connection, wanted, now)?;
        Ok(Self { gate, verdict, taken: 0 })
    }

    /// When time opens it, if it is shut and time does.
    pub(super) fn opens_at(&self) -> Option<Timestamp> {
        self.verdict.opens_at()
    }

    /// How many more may pass.
    pub(super) fn room(&self) -> u32 {
        self.verdict.starts().saturating_sub(self.taken)
    }

    /// Whether a cap counts what passes.
    pub(super) fn is_capped(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.gate.max_concurrent.is_some())
    }

    /// One has passed.
    pub(super) fn take(&mut self) {
        if self.gate.is_some() {
            self.taken += 1;
        }
    }

    /// Charges what has passed; answers what the gate says afterwards.
    pub(super) fn charge(mut self, connection: &Connection, now: Timestamp) -> rusqlite::Result<Verdict> {
        let room = self.room();
        let Some(gate) = self.gate.as_mut().filter(|_| self.taken > 0) else { return Ok(self.verdict) };
        gate.charge(connection, self.taken, now)?;
        if room > 0 { Ok(Verdict::Open(room)) } else { gate.admit(connection, 1, now) }
    }
}

/// What can be seen of one task from outside a transaction.
pub(super) fn look(
    connection: &Connection,
    (queue_name, queue): (&Name, QueueId),
    task: &Name,
    now: Timestamp,
) -> rusqlite::Result<Sight> {
    let (is_waiting, has_turns, has_open_turns): (bool, bool, bool) = connection
        .prepare_cached(include_str!("sql/gate_waiting.sql"))?
        .query_row(params![queue, &**task], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if !is_waiting && !has_turns {
        return Ok(Sight::Empty);
    }
    let holds = holds_of(connection, queue)?;
    let of_queue = StoredGate::of_queue(connection, queue_name, queue, &holds)?;
    let of_task = task_gate(connection, queue, task, &holds)?;
    for gate in [of_queue, of_task].into_iter().flatten() {
        let verdict = gate.admit(connection, 1, now)?;
        if verdict.starts() == 0 {
            return Ok(Sight::Shut(verdict.opens_at()));
        }
    }
    if is_waiting || has_open_turns {
        return Ok(Sight::Startable);
    }
    // The first of the whole queue: not too late for any of this task.
    let opens_at: Option<i64> = connection
        .prepare_cached(
            "SELECT min(opens_at) FROM flexiq_lanes INDEXED BY flexiq_lanes_opening
             WHERE queue = ?1 AND opens_at IS NOT NULL",
        )?
        .query_row([queue], |row| row.get(0))?;
    Ok(Sight::Shut(opens_at.map(Timestamp::from_millis)))
}

/// Whether a cap counts the leases of a lane.
pub(super) fn is_capped(connection: &Connection, lane: &Lane) -> rusqlite::Result<bool> {
    let Lane { queue, task, partition } = lane;
    for (scope, name) in [(scope::QUEUE, queue), (scope::TASK, task)] {
        if gate_of(connection, scope, name)?.is_some_and(|gate| gate.max_concurrent.is_some()) {
            return Ok(true);
        }
    }
    // The queue's number says only which holds there are, and a hold is no cap.
    let of_partition = match partition.is_empty() {
        true => None,
        false => StoredGate::of_partition(connection, 0, task, partition, 0)?,
    };
    Ok(of_partition.is_some_and(|gate| gate.gate.max_concurrent.is_some()))
}

/// The rates of the partition whose gate has this name.
pub(super) fn rates_of_partition(connection: &Connection, gate: &str) -> rusqlite::Result<Vec<Rate>> {
    let Some((task, _)) = parts_of(gate) else { return Ok(Vec::new()) };
    connection
        .prepare_cached(include_str!("sql/gate_partition.sql"))?
        .query_row(params![0, task, gate], |row| Ok(read_gate(row, 0)?.rates))
}

/// Until when the gates of a queue are held, by their names.
pub(super) type Holds = HashMap<String, Timestamp>;

/// The holds of a queue and its tasks: there are few.
pub(super) fn holds_of(connection: &Connection, queue: QueueId) -> rusqlite::Result<Holds> {
    connection
        .prepare_cached(
            "SELECT gate, until FROM flexiq_holds INDEXED BY flexiq_holds_of_tasks
             WHERE queue = ?1 AND instr(gate, ':') = 0",
        )?
        .query_map([queue], |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))))?
        .collect()
}

fn gate_of(connection: &Connection, scope: u8, name: &Name) -> rusqlite::Result<Option<Gate>> {
    connection
        .prepare_cached(include_str!("sql/gate.sql"))?
        .query_row(params![scope, &**name], |row| read_gate(row, 0))
        .optional()
}

/// Three columns: cap, rates, pause.
fn read_gate(row: &Row<'_>, first: usize) -> rusqlite::Result<Gate> {
    Ok(Gate {
        max_concurrent: row.get(first)?,
        rates: rates(row, first + 1)?.unwrap_or_default(),
        is_paused: row.get(first + 2)?,
        held_until: None,
    })
}
