//! explain: everything that keeps a job waiting. It only reads, and no more than its bounds, however much waits.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::codes::read_id;
use super::gates::{StoredGate, gate_name, gates_before, scope};
use super::lanes::{Lane, LaneId, QueueId, read_name};
use super::read;
use crate::clock::Timestamp;
use crate::job::{Job, JobId, State};
use crate::policy::Shut;
use crate::store::explanation::{
    Cause, Explanation, Holder, LiveWorker, MOST_COUNTED, MOST_LEASES_SEEN, MOST_NAMED, Origin,
};
use crate::store::types::{Scope, WorkerId};

pub(super) fn explain(
    connection: &Connection,
    now: Timestamp,
    id: JobId,
) -> rusqlite::Result<Option<Explanation>> {
    // All at one moment, also within a transaction that is open already.
    connection.execute_batch("SAVEPOINT explaining")?;
    let found = explain_now(connection, now, id);
    connection.execute_batch("RELEASE explaining")?;
    found
}

fn explain_now(connection: &Connection, now: Timestamp, id: JobId) -> rusqlite::Result<Option<Explanation>> {
    let Some(job) = read::job(connection, id)? else { return Ok(None) };
    let causes = match job.state {
        State::Scheduled(reason) => vec![Cause::NotDue { reason, due_at: job.due_at }],
        State::Ready => Ready::find(connection, now, &job)?.causes()?,
        _ => Vec::new(),
    };
    Ok(Some(Explanation::of(job, now, causes)))
}

/// A ready job that is explained.
struct Ready<'a> {
    connection: &'a Connection,
    now: Timestamp,
    id: JobId,
    queue: QueueId,
    lane_id: LaneId,
    lane: Lane,
}

impl<'a> Ready<'a> {
    fn find(connection: &'a Connection, now: Timestamp, job: &Job) -> rusqlite::Result<Self> {
        let (queue, lane_id) = connection
            .prepare_cached("SELECT queue, lane FROM flexiq_jobs WHERE id = ?1")?
            .query_row([job.id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let lane = Lane {
            queue: read_name("queue", &job.queue)?,
            task: read_name("task", &job.task)?,
            partition: job.partition.as_deref().unwrap_or_default().into(),
        };
        Ok(Self { connection, now, id: job.id, queue, lane_id, lane })
    }

    fn causes(&self) -> rusqlite::Result<Vec<Cause>> {
        let Lane { queue, task, partition } = &self.lane;
        let [of_queue, of_task, of_partition] = gates_before(self.connection, self.queue, &self.lane)?;
        let scopes = [
            (of_queue, Scope::Queue(queue.clone())),
            (of_task, Scope::Task(task.clone())),
            (of_partition, Scope::Partition(task.clone(), partition.to_string())),
        ];
        let mut causes = Vec::new();
        for (gate, scope) in scopes {
            if let Some(gate) = gate {
                let holders = || self.holders(&scope);
                causes.extend(shut_by(self.connection, self.now, &gate, &scope, holders)?);
            }
        }
        causes.extend(self.no_worker()?);
        causes.extend(self.behind()?);
        Ok(causes)
    }

    /// The first that started of those that a cap counts.
    fn holders(&self, of: &Scope) -> rusqlite::Result<Vec<Holder>> {
        let (task, partition) = match of {
            Scope::Queue(_) => (None, None),
            Scope::Task(task) | Scope::EachPartition(task) => (Some(&**task), None),
            Scope::Partition(task, partition) => (Some(&**task), Some(partition)),
        };
        let bounds = (MOST_LEASES_SEEN as i64, MOST_NAMED as i64);
        self.connection
            .prepare_cached(include_str!("sql/running.sql"))?
            .query_map(params![self.queue, task, partition, bounds.0, bounds.1], read_holder)?
            .collect()
    }

    /// That none of those who live links the task and serves the queue.
    fn no_worker(&self) -> rusqlite::Result<Option<Cause>> {
        let Lane { queue, task, .. } = &self.lane;
        let mut total = 0_i64;
        let alive: Vec<LiveWorker> = self
            .connection
            .prepare_cached(include_str!("sql/explain_workers.sql"))?
            .query_map(params![&**task, &**queue, self.now.as_millis(), MOST_NAMED as i64], |row| {
                total = row.get(4)?;
                Ok(LiveWorker {
                    worker: WorkerId::from_bytes(read_id(row, 0)?),
                    label: row.get(1)?,
                    links_task: row.get(2)?,
                    serves_queue: row.get(3)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        // One that does both stands first.
        let is_taken = alive.first().is_some_and(|worker| worker.links_task && worker.serves_queue);
        let total = u64::try_from(total).unwrap_or(0);
        Ok((!is_taken).then_some(Cause::NoWorker { alive, total }))
    }

    /// That others of its lane start first.
    fn behind(&self) -> rusqlite::Result<Option<Cause>> {
        let (jobs, outranked) = self
            .connection
            .prepare_cached(include_str!("sql/explain_behind.sql"))?
            .query_row(params![self.lane_id, self.id.as_bytes(), MOST_COUNTED as i64], |row| {
                Ok((row.get::<_, i64>(0)?, row.get(1)?))
            })?;
        let jobs = u64::try_from(jobs).unwrap_or(0);
        Ok((jobs > 0).then_some(Cause::Behind { jobs, outranked }))
    }
}

/// A row of `sql/running.sql`.
pub(super) fn read_holder(row: &Row<'_>) -> rusqlite::Result<Holder> {
    Ok(Holder {
        job: JobId::from_bytes(read_id(row, 0)?),
        worker: WorkerId::from_bytes(read_id(row, 1)?),
        started_at: Timestamp::from_millis(row.get(2)?).into(),
    })
}

/// Each thing for itself by which a gate is shut. Who holds a full cap is asked for only then.
pub(super) fn shut_by(
    connection: &Connection,
    now: Timestamp,
    gate: &StoredGate,
    of: &Scope,
    holders: impl Fn() -> rusqlite::Result<Vec<Holder>>,
) -> rusqlite::Result<Vec<Cause>> {
    let (rules, running) = gate.rules();
    let mut causes = Vec::new();
    for shut in gate.shut_by(connection, now)? {
        let scope = of.clone();
        causes.push(match shut {
            Shut::Paused => Cause::Paused { scope },
            Shut::Held { until } => Cause::Held { scope, until: until.into() },
            Shut::Full => Cause::Full {
                max_concurrent: rules.max_concurrent.unwrap_or(0),
                origin: origins(connection, of)?.0,
                running,
                holders: holders()?,
                scope,
            },
            Shut::Spent { opens_at } => Cause::Spent {
                rates: rules.rates.clone(),
                origin: origins(connection, of)?.1,
                opens_at: opens_at.into(),
                scope,
            },
        });
    }
    Ok(causes)
}

/// Where a cap comes from, and where rates do.
fn origins(connection: &Connection, of: &Scope) -> rusqlite::Result<(Origin, Origin)> {
    let (scope, name) = match of {
        Scope::Queue(queue) => (scope::QUEUE, queue.to_string()),
        Scope::Task(task) => (scope::TASK, task.to_string()),
        Scope::EachPartition(task) => (scope::EACH_PARTITION, task.to_string()),
        Scope::Partition(task, partition) => (scope::PARTITION, gate_name(task, partition)),
    };
    let is_set: Option<(bool, bool)> = connection
        .prepare_cached(
            "SELECT set_max_concurrent IS NOT NULL, set_rates IS NOT NULL
             FROM flexiq_limits WHERE scope = ?1 AND name = ?2",
        )?
        .query_row(params![scope, name], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (cap, rates) = is_set.unwrap_or_default();
    let origin = |is_set| if is_set { Origin::Set } else { Origin::Declared };
    Ok((origin(cap), origin(rates)))
}
