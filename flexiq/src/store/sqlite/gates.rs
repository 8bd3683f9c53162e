//! The gates of a queue and of the tasks that wait in it, as a claim and a bell see them.
//!
//! Policy decides; here is read what it decides by, and written what a start charges. A lane whose gate is shut costs one
//! look, however long it is, and a queue whose own gate is shut costs none of its tasks a look.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::lanes::{LaneId, Lanes, QueueId, read_name};
use super::ledger::Ledger;
use super::limits::rates;
use super::starts::Starts;
use crate::clock::Timestamp;
use crate::name::Name;
use crate::policy::{Gate, Verdict};

/// The column `scope` of limits and declarations.
pub(super) mod scope {
    pub(crate) const QUEUE: u8 = 0;
    pub(crate) const TASK: u8 = 1;
}

/// A lane in which something is ready.
pub(super) struct WaitingLane {
    pub(super) id: LaneId,
    pub(super) partition: String,
    pub(super) ready: i64,
    /// The index of its task among the waiting ones.
    pub(super) task: usize,
}

/// A task of which something is ready.
pub(super) struct WaitingTask {
    pub(super) name: Name,
    /// Jobs that are ready, of all its lanes.
    pub(super) ready: i64,
    pub(super) gate: Option<StoredGate>,
}

/// All that waits in a queue, and what keeps it waiting.
pub(super) struct Waiting {
    pub(super) gate: Option<StoredGate>,
    pub(super) tasks: Vec<WaitingTask>,
    pub(super) lanes: Vec<WaitingLane>,
}

/// A gate, and the leases that its cap counts.
pub(super) struct StoredGate {
    queue: QueueId,
    /// Empty for the gate of the whole queue.
    task: String,
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
        let mut waiting =
            Self { gate: StoredGate::of_queue(connection, name, queue)?, tasks: vec![], lanes: vec![] };
        let mut statement = connection.prepare_cached(include_str!("sql/claim_lanes.sql"))?;
        let mut rows = statement.query([queue])?;
        while let Some(row) = rows.next()? {
            waiting.take_in(connection, queue, row)?;
        }
        waiting.count_unwritten(connection, lanes, ledger, queue)?;
        Ok(waiting)
    }

    /// Takes in the next lane; those of one task follow each other.
    fn take_in(&mut self, connection: &Connection, queue: QueueId, row: &Row<'_>) -> rusqlite::Result<()> {
        let (task, ready) = (row.get_ref(1)?.as_str()?, row.get(3)?);
        match self.tasks.last_mut() {
            Some(last) if last.name.as_str() == task => last.ready += ready,
            _ => {
                let gate = StoredGate::of_task(connection, queue, task, read_gate(row, 4)?)?;
                self.tasks.push(WaitingTask { name: read_name("task", task)?, ready, gate });
            }
        }
        let task = self.tasks.len() - 1;
        self.lanes.push(WaitingLane { id: row.get(0)?, partition: row.get(2)?, ready, task });
        Ok(())
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
    fn of_queue(connection: &Connection, name: &Name, queue: QueueId) -> rusqlite::Result<Option<Self>> {
        let Some(gate) = gate_of(connection, scope::QUEUE, name)? else { return Ok(None) };
        let running = match gate.max_concurrent {
            Some(_) => connection
                .prepare_cached("SELECT running FROM flexiq_queues WHERE queue = ?1")?
                .query_row([queue], |row| row.get(0))?,
            None => 0,
        };
        Ok(Some(Self { queue, task: String::new(), gate, running }))
    }

    /// The gate of a task in a queue, unless it holds nothing back.
    fn of_task(
        connection: &Connection,
        queue: QueueId,
        task: &str,
        gate: Gate,
    ) -> rusqlite::Result<Option<Self>> {
        if gate.is_none() {
            return Ok(None);
        }
        let running = match gate.max_concurrent {
            Some(_) => connection
                .prepare_cached(include_str!("sql/gate_running.sql"))?
                .query_row(params![queue, task], |row| row.get(0))?,
            None => 0,
        };
        Ok(Some(Self { queue, task: task.into(), gate, running }))
    }

    /// How many of `wanted` may start.
    fn admit(&self, connection: &Connection, wanted: u32, now: Timestamp) -> rusqlite::Result<Verdict> {
        let running = u64::try_from(self.running).unwrap_or(0);
        if self.gate.rates.is_empty() {
            return self.gate.admit(wanted, running, now, &mut Starts::unasked(connection));
        }
        let mut starts = Starts::open(connection, self.queue, &self.task)?;
        let moment = starts.moment(now);
        self.gate.admit(wanted, running, moment, &mut starts)
    }

    /// Charges what has been claimed.
    fn charge(&mut self, connection: &Connection, starts: u32, now: Timestamp) -> rusqlite::Result<()> {
        self.running += i64::from(starts);
        if self.gate.rates.is_empty() {
            return Ok(());
        }
        Starts::open(connection, self.queue, &self.task)?.add(starts, now, &self.gate.rates)
    }
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
    let is_waiting = connection
        .prepare_cached(include_str!("sql/gate_waiting.sql"))?
        .query_row(params![queue, &**task], |_| Ok(()))
        .optional()?;
    if is_waiting.is_none() {
        return Ok(Sight::Empty);
    }
    let of_task = match gate_of(connection, scope::TASK, task)? {
        Some(gate) => StoredGate::of_task(connection, queue, task, gate)?,
        None => None,
    };
    for gate in [StoredGate::of_queue(connection, queue_name, queue)?, of_task].into_iter().flatten() {
        let verdict = gate.admit(connection, 1, now)?;
        if verdict.starts() == 0 {
            return Ok(Sight::Shut(verdict.opens_at()));
        }
    }
    Ok(Sight::Startable)
}

/// Whether a cap counts the leases of a task in a queue.
pub(super) fn is_capped(connection: &Connection, queue: &Name, task: &Name) -> rusqlite::Result<bool> {
    for (scope, name) in [(scope::QUEUE, queue), (scope::TASK, task)] {
        if gate_of(connection, scope, name)?.is_some_and(|gate| gate.max_concurrent.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
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
    })
}
