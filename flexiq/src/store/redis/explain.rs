//! explain: everything that keeps a job waiting. What its queue knows is one step; who is alive, and where a limit comes
//! from, the whole store knows.

use super::codes::{read_job, read_rates};
use super::fleet::{read_standing, scope_key};
use super::read::HEAD;
use super::wire::{Parts, Unpacked, unreadable};
use super::{Shared, keys, scripts};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::job::{JobId, State};
use crate::name::Name;
use crate::store::explanation::{
    Cause, Explanation, Holder, LiveWorker, MOST_COUNTED, MOST_LEASES_SEEN, MOST_NAMED, Origin,
};
use crate::store::types::{Scope, WorkerId};

pub(super) async fn explain(store: &Shared, id: JobId) -> Result<Option<Explanation>> {
    for queue in store.queues().await? {
        let args = vec![id.as_bytes().to_vec(), HEAD.into(), MOST_LEASES_SEEN.to_string().into_bytes()];
        let answer = store.run(&scripts::EXPLAIN, &queue, args).await?;
        let mut parts = Parts::of(answer, store.place());
        if parts.is_empty() {
            continue;
        }
        let at = Timestamp::from_millis(parts.number()?);
        let (run, body, progress) = (parts.bytes()?, parts.bytes()?, parts.bytes()?);
        let job = read_job(*id.as_bytes(), &queue, &run, &body, &progress)
            .ok_or_else(|| unreadable(store.place(), "a job of another form"))?;
        let causes = match job.state {
            State::Scheduled(reason) => vec![Cause::NotDue { reason, due_at: job.due_at }],
            State::Ready => {
                let task = Name::new("task", &job.task)?;
                let partition = job.partition.as_deref().unwrap_or_default();
                causes(store, parts, &queue, &task, partition).await?
            }
            _ => Vec::new(),
        };
        return Ok(Some(Explanation::of(job, at, causes)));
    }
    Ok(None)
}

/// All that keeps a ready job waiting.
async fn causes(
    store: &Shared,
    mut parts: Parts<'_>,
    queue: &Name,
    task: &Name,
    partition: &str,
) -> Result<Vec<Cause>> {
    let mut causes = Vec::new();
    let (before, higher) = (parts.number()?.unsigned_abs(), parts.number()?);
    if before > 0 {
        causes.push(Cause::Behind { jobs: before.min(MOST_COUNTED), outranked: higher > 0 });
    }
    let scopes = [
        Scope::Queue(queue.clone()),
        Scope::Task(task.clone()),
        Scope::Partition(task.clone(), partition.into()),
    ];
    for scope in scopes {
        let shut = ShutGate::read(&mut parts)?
            .ok_or_else(|| unreadable(store.place(), "holders of another form"))?;
        let origins = if shut.has_limit() { origins(store, &scope).await? } else { DECLARED };
        causes.extend(shut.causes(&scope, origins));
    }
    causes.extend(no_worker(store, queue, task).await?);
    Ok(causes)
}

/// Each thing by which a gate is shut, as `lua/lib/shut.lua` tells it.
pub(super) struct ShutGate {
    is_paused: bool,
    held_until: Option<i64>,
    full: Option<u32>,
    running: u64,
    holders: Vec<Holder>,
    rates: String,
    opens_at: Option<i64>,
}

impl ShutGate {
    /// `None` for holders of another form.
    pub(super) fn read(parts: &mut Parts<'_>) -> Result<Option<Self>> {
        let is_paused = !parts.text()?.is_empty();
        let held_until = parts.text()?.parse().ok();
        let (full, running) = (parts.text()?.parse().ok(), parts.number()?.unsigned_abs());
        let Some(holders) = read_holders(&parts.bytes()?) else { return Ok(None) };
        let (rates, opens_at) = (parts.text()?, parts.text()?.parse().ok());
        Ok(Some(Self { is_paused, held_until, full, running, holders, rates, opens_at }))
    }

    fn has_limit(&self) -> bool {
        self.full.is_some() || self.opens_at.is_some()
    }

    pub(super) fn causes(self, of: &Scope, (cap, rates): (Origin, Origin)) -> Vec<Cause> {
        let moment = |ms| Timestamp::from_millis(ms).into();
        let scope = || of.clone();
        let paused = self.is_paused.then(|| Cause::Paused { scope: scope() });
        let held = self.held_until.map(|until| Cause::Held { scope: scope(), until: moment(until) });
        let (running, holders) = (self.running, self.holders);
        let full = self.full.map(|max_concurrent| Cause::Full {
            scope: scope(),
            max_concurrent,
            origin: cap,
            running,
            holders,
        });
        let spent = self.opens_at.zip(read_rates(&self.rates)).map(|(opens_at, all)| Cause::Spent {
            scope: scope(),
            rates: all,
            origin: rates,
            opens_at: moment(opens_at),
        });
        [paused, held, full, spent].into_iter().flatten().collect()
    }
}

/// The first that started, of ids, workers and starts without anything between them.
fn read_holders(bytes: &[u8]) -> Option<Vec<Holder>> {
    let mut rest = Unpacked(bytes);
    let mut holders = Vec::new();
    while !rest.0.is_empty() {
        holders.push(Holder {
            job: JobId::from_bytes(rest.id()?),
            worker: WorkerId::from_bytes(rest.id()?),
            started_at: rest.moment()?.into(),
        });
    }
    holders.sort_by_key(|holder| (holder.started_at, holder.job));
    holders.truncate(MOST_NAMED);
    Some(holders)
}

const DECLARED: (Origin, Origin) = (Origin::Declared, Origin::Declared);

/// Where the cap of a scope comes from, and where its rates do.
async fn origins(store: &Shared, scope: &Scope) -> Result<(Origin, Origin)> {
    let key = keys::one_of_fleet(store.prefix(), "limits");
    let scope = scope_key(scope);
    let row = store.call(redis::cmd("HGET").arg(key).arg(&scope)).await?;
    let mut row = Parts::of(row, store.place());
    if row.is_empty() {
        return Ok(DECLARED);
    }
    let standing = read_standing(&scope, &row.text()?)
        .ok_or_else(|| unreadable(store.place(), "limits of another form"))?;
    let origin = |is_set| if is_set { Origin::Set } else { Origin::Declared };
    let set = standing.overrides;
    Ok((origin(set.max_concurrent.is_some()), origin(set.rates.is_some())))
}

/// That none of those who live links the task and serves the queue.
async fn no_worker(store: &Shared, queue: &Name, task: &Name) -> Result<Option<Cause>> {
    let args = [task.as_str(), queue.as_str(), &MOST_NAMED.to_string()];
    let args = args.map(|arg| arg.as_bytes().to_vec()).to_vec();
    let answer = store.run_fleet(&scripts::FLEET_EXPLAIN, args).await?;
    let mut parts = Parts::of(answer, store.place());
    if parts.is_empty() {
        return Ok(None);
    }
    let total = parts.number()?.unsigned_abs();
    let mut alive = Vec::new();
    while !parts.is_empty() {
        let worker = Unpacked(&parts.bytes()?)
            .id()
            .ok_or_else(|| unreadable(store.place(), "a worker of another form"))?;
        alive.push(LiveWorker {
            worker: WorkerId::from_bytes(worker),
            label: parts.text()?,
            links_task: parts.number()? > 0,
            serves_queue: parts.number()? > 0,
        });
    }
    Ok(Some(Cause::NoWorker { alive, total }))
}
