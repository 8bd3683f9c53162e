//! stats: the facts of the whole store at one moment, from what is counted anyway. It only reads.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use super::codes::read_id;
use super::explain::{read_holder, shut_by};
use super::gates::{Holds, StoredGate, holds_of, task_gate};
use super::house::all_queues;
use super::lanes::{LaneId, QueueId, read_name};
use super::limits::{limits, rates, read_scope};
use super::read;
use super::samples::samples;
use crate::clock::Timestamp;
use crate::name::Name;
use crate::store::explanation::{Cause, Holder, MOST_LEASES_SEEN, MOST_NAMED};
use crate::store::stats::{LEAST_HEADS_SEEN, MOST_HEADS_SEEN, QueueFacts, Snapshot, TaskFacts, WorkerFacts};
use crate::store::types::{Limits, Scope, TaskCounts, WorkerId};

pub(super) fn stats(connection: &Connection, now: Timestamp) -> rusqlite::Result<Snapshot> {
    // All at one moment, also within a transaction that is open already.
    connection.execute_batch("SAVEPOINT looking")?;
    let found = stats_now(connection, now);
    connection.execute_batch("RELEASE looking")?;
    found
}

fn stats_now(connection: &Connection, now: Timestamp) -> rusqlite::Result<Snapshot> {
    let mut counts = read::counts(connection)?.tasks;
    counts.retain(|counts| !counts.is_empty());
    let (mut queues, mut tasks) = (Vec::new(), Vec::new());
    let looks = looks_for_each(connection)?;
    for (id, name) in all_queues(connection)? {
        let look = Look::at(connection, now, (id, name), looks)?;
        let own = counts.iter().filter(|counts| *counts.queue == *look.name);
        let own: Vec<TaskFacts> = own.map(|counts| look.task(counts)).collect::<rusqlite::Result<_>>()?;
        queues.push(look.queue(&own)?);
        tasks.extend(own);
    }
    Ok(Snapshot {
        at: now,
        queues,
        tasks,
        workers: workers(connection, now)?,
        homes: homes(connection)?,
        standings: limits(connection)?,
        samples: samples(connection)?,
        stale: 0,
    })
}

/// How many partitions are looked at of each task.
fn looks_for_each(connection: &Connection) -> rusqlite::Result<usize> {
    let tasks: i64 = connection
        .prepare_cached(
            "SELECT count(*) FROM flexiq_partitioned INDEXED BY flexiq_partitioned_waiting WHERE ready > 0",
        )?
        .query_row([], |row| row.get(0))?;
    let tasks = usize::try_from(tasks).unwrap_or(0).max(1);
    Ok((MOST_HEADS_SEEN / tasks).max(LEAST_HEADS_SEEN))
}

/// A queue that is looked at.
struct Look<'a> {
    connection: &'a Connection,
    now: Timestamp,
    id: QueueId,
    name: Name,
    holds: Holds,
    /// Its running jobs by task, those that started first before the others.
    running: HashMap<String, Vec<Holder>>,
    looks: usize,
}

impl<'a> Look<'a> {
    fn at(
        connection: &'a Connection,
        now: Timestamp,
        (id, name): (QueueId, Name),
        looks: usize,
    ) -> rusqlite::Result<Self> {
        let mut running: HashMap<String, Vec<Holder>> = HashMap::new();
        let mut statement = connection.prepare_cached(include_str!("sql/running.sql"))?;
        let of_any: Option<&str> = None;
        let most = MOST_LEASES_SEEN as i64;
        let mut rows = statement.query(params![id, of_any, of_any, most, most])?;
        while let Some(row) = rows.next()? {
            running.entry(row.get(3)?).or_default().push(read_holder(row)?);
        }
        let holds = holds_of(connection, id)?;
        Ok(Self { connection, now, id, name, holds, running, looks })
    }

    fn task(&self, counts: &TaskCounts) -> rusqlite::Result<TaskFacts> {
        let (lane, plain, in_partitions, open): (Option<LaneId>, i64, i64, i64) = self
            .connection
            .prepare_cached(include_str!("sql/stats_task.sql"))?
            .query_row(params![self.id, counts.task], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        let task = read_name("task", &counts.task)?;
        let gate = task_gate(self.connection, self.id, &task, &self.holds)?;
        let running = self.running.get(&counts.task).map(Vec::as_slice).unwrap_or_default();
        let oldest_of = |lane: LaneId| oldest_ready(self.connection, lane);
        let mut oldest_ready_at = lane.filter(|_| plain > 0).map(oldest_of).transpose()?.flatten();
        if in_partitions > 0 {
            for lane in self.oldest_partitions(&task)? {
                oldest_ready_at = [oldest_ready_at, oldest_of(lane)?].into_iter().flatten().min();
            }
        }
        Ok(TaskFacts {
            counts: counts.clone(),
            startable: self.admitted(gate.as_ref(), (plain + open).unsigned_abs())?,
            in_partitions: in_partitions.unsigned_abs(),
            oldest_ready_at,
            oldest_run_at: running.first().map(|oldest| oldest.started_at.into()),
            shut_by: self.shut_by(gate.as_ref(), &Scope::Task(task), || named(running.iter().copied()))?,
        })
    }

    fn queue(&self, tasks: &[TaskFacts]) -> rusqlite::Result<QueueFacts> {
        let gate = StoredGate::of_queue(self.connection, &self.name, self.id, &self.holds)?;
        let (pending, running): (i64, i64) = self
            .connection
            .prepare_cached("SELECT pending, running FROM flexiq_queues WHERE queue = ?1")?
            .query_row([self.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let all = || {
            let mut all: Vec<Holder> = self.running.values().flatten().copied().collect();
            all.sort_by_key(|holder| (holder.started_at, holder.job));
            named(all)
        };
        Ok(QueueFacts {
            queue: self.name.clone(),
            pending: pending.unsigned_abs(),
            running: running.unsigned_abs(),
            startable: self.admitted(gate.as_ref(), tasks.iter().map(|task| task.startable).sum())?,
            shut_by: self.shut_by(gate.as_ref(), &Scope::Queue(self.name.clone()), all)?,
        })
    }

    /// How many of these a gate lets start.
    fn admitted(&self, gate: Option<&StoredGate>, jobs: u64) -> rusqlite::Result<u64> {
        match gate {
            Some(gate) if jobs > 0 => {
                let wanted = u32::try_from(jobs).unwrap_or(u32::MAX);
                Ok(gate.admit(self.connection, wanted, self.now)?.starts().into())
            }
            _ => Ok(jobs),
        }
    }

    fn shut_by(
        &self,
        gate: Option<&StoredGate>,
        scope: &Scope,
        holders: impl Fn() -> Vec<Holder>,
    ) -> rusqlite::Result<Vec<Cause>> {
        let Some(gate) = gate else { return Ok(Vec::new()) };
        shut_by(self.connection, self.now, gate, scope, || Ok(holders()))
    }

    /// The partitions of a task of which something is ready, those with the oldest heads.
    fn oldest_partitions(&self, task: &Name) -> rusqlite::Result<Vec<LaneId>> {
        self.connection
            .prepare_cached(include_str!("sql/stats_partitions.sql"))?
            .query_map(params![self.id, &**task, self.looks as i64], |row| row.get(0))?
            .collect()
    }
}

/// As many as are named of those that hold a cap.
fn named(running: impl IntoIterator<Item = Holder>) -> Vec<Holder> {
    running.into_iter().take(MOST_NAMED).collect()
}

fn oldest_ready(connection: &Connection, lane: LaneId) -> rusqlite::Result<Option<Timestamp>> {
    let oldest: Option<i64> = connection
        .prepare_cached(include_str!("sql/stats_oldest.sql"))?
        .query_row([lane], |row| row.get(0))?;
    Ok(oldest.map(Timestamp::from_millis))
}

fn workers(connection: &Connection, now: Timestamp) -> rusqlite::Result<Vec<WorkerFacts>> {
    connection
        .prepare_cached(include_str!("sql/stats_workers.sql"))?
        .query_map([now.as_millis()], |row| {
            let worker = WorkerId::from_bytes(read_id(row, 0)?);
            Ok(WorkerFacts {
                worker,
                label: row.get(1)?,
                since: Timestamp::from_millis(row.get(2)?),
                beat_at: Timestamp::from_millis(row.get(3)?),
                report: row.get(4)?,
                declared: declared(connection, worker)?,
            })
        })?
        .collect()
}

/// What one worker declares.
fn declared(connection: &Connection, worker: WorkerId) -> rusqlite::Result<Vec<(Scope, Limits)>> {
    let read = |row: &Row<'_>| {
        let max_pending: Option<i64> = row.get(4)?;
        let limits = Limits {
            max_concurrent: row.get(2)?,
            rates: rates(row, 3)?.unwrap_or_default(),
            max_pending: max_pending.map(i64::unsigned_abs),
        };
        Ok((read_scope(row.get(0)?, row.get_ref(1)?.as_str()?)?, limits))
    };
    let mut declared: Vec<(Scope, Limits)> = connection
        .prepare_cached(include_str!("sql/stats_declared.sql"))?
        .query_map([worker.as_bytes()], read)?
        .collect::<rusqlite::Result<_>>()?;
    declared.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(declared)
}

/// Each known task with its home queue.
fn homes(connection: &Connection) -> rusqlite::Result<Vec<(Name, Name)>> {
    connection
        .prepare_cached("SELECT task, queue FROM flexiq_tasks ORDER BY task")?
        .query_map([], |row| {
            let task = read_name("task", row.get_ref(0)?.as_str()?)?;
            Ok((task, read_name("queue", row.get_ref(1)?.as_str()?)?))
        })?
        .collect()
}
