//! The whole store: workers, what they declare, what is set at runtime, and the copy of it that each queue has.
//!
//! No step touches two queues, or a queue and these keys. What holds is worked out here, numbered, and brought to each
//! queue after; a queue takes no older copy than it has, and each beat looks for one that was not brought.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::codes::{each_partition, millis, read_rates, write_lane, write_rates};
use super::schedules::written;
use super::wire::{Parts, unreadable};
use super::{Shared, keys, scripts};
use crate::error::Result;
use crate::name::Name;
use crate::store::schedules::Schedule;
use crate::store::types::{Change, Declared, Hello, Limits, Overrides, Scope, Standing, WorkerId};

pub(super) async fn register(store: &Shared, hello: Hello) -> Result<()> {
    let words: BTreeMap<String, Json> = hello
        .queues
        .iter()
        .map(|(queue, limits)| (format!("q:{queue}"), word(limits).into()))
        .chain(hello.tasks.iter().map(|task| (format!("t:{}", task.task), word(&task.limits).into())))
        .chain(hello.tasks.iter().map(|task| (format!("e:{}", task.task), word(&task.per_partition).into())))
        .chain(hello.tasks.iter().filter_map(|task| {
            let schedule = task.schedule.as_ref()?;
            Some((format!("s:{}", task.task), format!("{}\n{}", task.queue, schedule.to_json()).into()))
        }))
        .collect();
    // The home of a cron is known, too, whether anyone serves it or not.
    let homes = hello.tasks.iter().filter(|task| task.schedule.is_some()).map(|task| &task.queue);
    let queues: BTreeSet<&Name> = hello.queues.iter().map(|(queue, _)| queue).chain(homes).collect();
    let number = |duration| millis(duration).to_string().into_bytes();
    // How often beats will come, the first of them says.
    let (lease, every) = (number(hello.lease), number(hello.lease * 3 / 10));
    let mut args = vec![
        hello.worker.as_bytes().to_vec(),
        lease.clone(),
        every.clone(),
        hello.label.as_bytes().to_vec(),
        serde_json::to_vec(&words).unwrap_or_else(|_| b"{}".to_vec()),
        queues.len().to_string().into_bytes(),
    ];
    args.extend(queues.iter().map(|queue| queue.as_bytes().to_vec()));
    for Declared { task, queue, json, .. } in &hello.tasks {
        args.push(task.as_bytes().to_vec());
        args.push(format!("{queue}\n{json}").into_bytes());
    }
    store.run_fleet(&scripts::FLEET_REGISTER, args).await?;
    for queue in store.queues().await? {
        store.run(&scripts::BEAT, &queue, vec![lease.clone(), every.clone()]).await?;
    }
    store.publish().await
}

pub(super) async fn retire(store: &Shared, worker: WorkerId) -> Result<()> {
    let id = worker.as_bytes().to_vec();
    let answer = store.run_fleet(&scripts::FLEET_RETIRE, vec![id.clone()]).await?;
    if Parts::of(answer, store.place()).number()? > 0 {
        store.publish().await?;
    }
    for queue in store.queues().await? {
        store.run(&scripts::FORGET, &queue, vec![id.clone()]).await?;
    }
    Ok(())
}

pub(super) async fn limit(store: &Shared, scope: Scope, change: Change) -> Result<()> {
    let is_resume = change == Change::Paused(false);
    let (what, text) = match change {
        Change::MaxConcurrent(jobs) => ("cap", jobs.map(|jobs| jobs.to_string())),
        // No rate at all is a rate that is set, too.
        Change::Rates(rates) => ("rates", rates.map(|rates| format!("={}", write_rates(&rates)))),
        Change::MaxPending(jobs) => ("max_pending", jobs.map(|jobs| jobs.to_string())),
        Change::Paused(is_paused) => ("paused", Some(u8::from(is_paused).to_string())),
    };
    let args = [scope_key(&scope), what.to_owned(), text.unwrap_or_default()];
    store.run_fleet(&scripts::FLEET_LIMIT, args.map(String::into_bytes).to_vec()).await?;
    store.publish().await?;
    if is_resume {
        end_hold(store, &scope).await?;
    }
    Ok(())
}

/// Ends what runs have said of a scope, in each queue for itself.
async fn end_hold(store: &Shared, scope: &Scope) -> Result<()> {
    for queue in store.queues().await? {
        if let Some(name) = gate_name(scope, &queue) {
            store.run(&scripts::RESUME, &queue, vec![name]).await?;
        }
    }
    Ok(())
}

pub(super) async fn limits(store: &Shared) -> Result<Vec<Standing>> {
    let key = keys::one_of_fleet(store.prefix(), "limits");
    let rows = store.call(redis::cmd("HGETALL").arg(key)).await?;
    let mut standings = read_standings(Parts::of(rows, store.place()), store.place())?;
    standings.sort_by(|one, other| one.scope.cmp(&other.scope));
    Ok(standings)
}

pub(super) async fn declarations(store: &Shared) -> Result<Vec<(Name, String)>> {
    let key = keys::one_of_fleet(store.prefix(), "tasks");
    let rows = store.call(redis::cmd("HGETALL").arg(key)).await?;
    let mut parts = Parts::of(rows, store.place());
    let mut declarations = Vec::new();
    while !parts.is_empty() {
        let (task, text) = (Name::new("task", parts.text()?)?, parts.text()?);
        let (_queue, json) = text.split_once('\n').unwrap_or_default();
        declarations.push((task, json.to_owned()));
    }
    declarations.sort();
    Ok(declarations)
}

impl Shared {
    /// Notices who is silent, and brings what holds to all queues.
    pub(super) async fn publish(&self) -> Result<()> {
        let queues = self.queues().await?;
        self.publish_to(&queues).await
    }

    /// Makes a queue known, with its copy of what holds.
    pub(super) async fn make_known(&self, queue: &Name) -> Result<()> {
        // Known first: whoever changes a limit from here on brings it, too.
        let key = keys::one_of_fleet(self.prefix(), "queues");
        self.call(redis::cmd("SADD").arg(key).arg(queue.as_str())).await?;
        self.publish_to(std::slice::from_ref(queue)).await
    }

    pub(super) async fn publish_to(&self, queues: &[Name]) -> Result<()> {
        let answer = self.run_fleet(&scripts::FLEET_SETTLE, vec![]).await?;
        let mut parts = Parts::of(answer, self.place());
        let head = vec![parts.number()?.to_string().into_bytes(), parts.bytes()?];
        let crons = read_crons(Parts::of(parts.value(), self.place()), self.place())?;
        let standings = read_standings(parts, self.place())?;
        for queue in queues {
            let mut args = head.clone();
            let here: Vec<_> = crons.iter().filter(|(_, home, _)| home == queue).collect();
            args.push(here.len().to_string().into_bytes());
            for (task, _, schedule) in here {
                args.push(task.as_bytes().to_vec());
                args.extend(written(schedule));
            }
            for standing in &standings {
                args.extend(
                    gate_name(&standing.scope, queue)
                        .map(|name| [name, gate(standing).into_bytes()])
                        .into_iter()
                        .flatten(),
                );
            }
            self.run(&scripts::KNOW, queue, args).await?;
        }
        Ok(())
    }
}

/// The crons that hold of what workers declare: task, home queue, and the schedule.
fn read_crons(mut parts: Parts<'_>, place: &str) -> Result<Vec<(Name, Name, Schedule)>> {
    let mut crons = Vec::new();
    while !parts.is_empty() {
        let (task, word) = (Name::new("task", parts.text()?)?, parts.text()?);
        let read = word.split_once('\n').and_then(|(home, json)| Some((home, Schedule::from_json(json)?)));
        let (home, schedule) = read.ok_or_else(|| unreadable(place, "a cron of another form"))?;
        crons.push((task, Name::new("queue", home)?, schedule));
    }
    Ok(crons)
}

/// Limits as `cap|rates|max_pending`.
fn word(limits: &Limits) -> String {
    let Limits { max_concurrent, rates, max_pending } = limits;
    format!("{}|{}|{}", number(*max_concurrent), write_rates(rates), number(*max_pending))
}

/// What holds, as a queue's copy has it. The `max_pending` that is declared comes with each enqueue.
pub(super) fn gate(standing: &Standing) -> String {
    let limits = standing.limits();
    let (cap, rates) = (number(limits.max_concurrent), write_rates(&limits.rates));
    format!("{}|{cap}|{rates}|{}", u8::from(standing.is_paused), number(standing.overrides.max_pending))
}

fn number(number: Option<impl ToString>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

pub(super) fn scope_key(scope: &Scope) -> String {
    match scope {
        Scope::Queue(queue) => format!("q:{queue}"),
        Scope::Task(task) => format!("t:{task}"),
        Scope::EachPartition(task) => format!("e:{task}"),
        Scope::Partition(task, partition) => format!("p:{task}:{partition}"),
    }
}

/// The gate of a scope in a queue, as its keys name it; `None` for another queue.
pub(super) fn gate_name(scope: &Scope, queue: &Name) -> Option<Vec<u8>> {
    match scope {
        Scope::Queue(of) => (of == queue).then(Vec::new),
        Scope::Task(task) => Some(task.as_bytes().to_vec()),
        Scope::EachPartition(task) => Some(each_partition(task)),
        Scope::Partition(task, partition) => Some(write_lane(task, partition)),
    }
}

pub(super) fn read_standings(mut parts: Parts<'_>, place: &str) -> Result<Vec<Standing>> {
    let mut standings = Vec::new();
    while !parts.is_empty() {
        let (scope, row) = (parts.text()?, parts.text()?);
        standings
            .push(read_standing(&scope, &row).ok_or_else(|| unreadable(place, "limits of another form"))?);
    }
    let each: BTreeMap<Name, Limits> = standings
        .iter()
        .filter_map(|standing| match &standing.scope {
            Scope::EachPartition(task) => Some((task.clone(), standing.limits())),
            _ => None,
        })
        .collect();
    for standing in &mut standings {
        if let Scope::Partition(task, _) = &standing.scope {
            standing.declared = each.get(task).cloned().unwrap_or_default();
        }
    }
    Ok(standings)
}

pub(super) fn read_standing(scope: &str, row: &str) -> Option<Standing> {
    let mut parts = row.split(';');
    let (declared, set, paused) = (parts.next()?, parts.next()?, parts.next()?);
    let mut set = set.split('|');
    Some(Standing {
        scope: read_scope(scope)?,
        declared: read_limits(declared)?,
        overrides: Overrides {
            max_concurrent: set.next()?.parse().ok(),
            rates: match set.next()?.strip_prefix('=') {
                Some(rates) => Some(read_rates(rates)?),
                None => None,
            },
            max_pending: set.next()?.parse().ok(),
        },
        is_paused: paused == "1",
    })
}

/// What is limited, as [`scope_key`] writes it.
pub(super) fn read_scope(scope: &str) -> Option<Scope> {
    Some(match scope.split_once(':')? {
        ("q", queue) => Scope::Queue(Name::new("queue", queue).ok()?),
        ("t", task) => Scope::Task(Name::new("task", task).ok()?),
        ("e", task) => Scope::EachPartition(Name::new("task", task).ok()?),
        ("p", of) => {
            let (task, partition) = of.split_once(':')?;
            Scope::Partition(Name::new("task", task).ok()?, partition.into())
        }
        _ => return None,
    })
}

/// Limits, as [`word`] writes them.
pub(super) fn read_limits(word: &str) -> Option<Limits> {
    let mut parts = word.split('|');
    Some(Limits {
        max_concurrent: parts.next()?.parse().ok(),
        rates: read_rates(parts.next()?)?,
        max_pending: parts.next()?.parse().ok(),
    })
}
