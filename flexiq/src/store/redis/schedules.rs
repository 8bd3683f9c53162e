//! schedule, schedules and tick: what is enqueued by the clock. Each schedule lies in the queue of its task.

use std::collections::HashMap;

use super::codes::write_body;
use super::enqueue::head;
use super::wire::{Packed, Parts, Unpacked, unreadable};
use super::{Shared, keys, scripts};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::job::JobId;
use crate::name::Name;
use crate::policy::{CronSchedule, Seen};
use crate::store::explanation::Origin;
use crate::store::schedules::{DueTick, MOST_SCHEDULES, Planning, Schedule, Standby, Tick, Ticked, too_many};

pub(super) async fn schedule(store: &Shared, queue: Name, name: Name, planning: Planning) -> Result<()> {
    let mut args = vec![name.as_bytes().to_vec()];
    let what = match &planning {
        Planning::Set(schedule) => {
            args.extend(written(schedule));
            args.push(MOST_SCHEDULES.to_string().into_bytes());
            "set"
        }
        Planning::Removed => "removed",
        Planning::Paused(true) => "paused",
        Planning::Paused(false) => "resumed",
    };
    args.insert(0, what.into());
    loop {
        let answer = store.run(&scripts::SCHEDULE, &queue, args.clone()).await?;
        match Parts::of(answer, store.place()).text()?.as_str() {
            "new" => store.make_known(&queue).await?,
            "many" => return Err(too_many(&queue)),
            _ => break,
        }
    }
    if planning == Planning::Removed && store.queues().await?.contains(&queue) {
        // What workers declare under its name holds again.
        store.publish_to(std::slice::from_ref(&queue)).await?;
    }
    Ok(())
}

/// A schedule as scripts take it: whether it catches up and its cron, and what it enqueues.
pub(super) fn written(schedule: &Schedule) -> [Vec<u8>; 2] {
    let cron = Packed::default().byte(schedule.catch_up.into()).bytes(&write_cron(&schedule.cron)).0;
    let job = schedule.job(JobId::from_bytes([0; 16]));
    let (head, body) = (head(&job, 1), write_body(&job));
    let plan = Packed::default().word(head.len() as u32).bytes(&head).word(body.len() as u32).bytes(&body);
    [cron, plan.bytes(schedule.to_json().as_bytes()).0]
}

fn write_cron(cron: &CronSchedule) -> Vec<u8> {
    format!("{}\n{}", cron.pattern, cron.timezone).into_bytes()
}

pub(super) async fn schedules(store: &Shared) -> Result<Vec<Standby>> {
    let mut all = Vec::new();
    for queue in store.queues().await? {
        let stands = pairs(store, &queue, "schedules").await?;
        if stands.is_empty() {
            continue;
        }
        let plans: HashMap<String, Vec<u8>> = pairs(store, &queue, "plans").await?.into_iter().collect();
        for (name, stand) in stands {
            // Between the two questions it may have been taken back.
            let Some(plan) = plans.get(&name) else { continue };
            let name = Name::new("schedule", name)?;
            let standby = read_standby(&queue, name, &stand, plan);
            all.push(standby.ok_or_else(|| unreadable(store.place(), "a schedule of another form"))?);
        }
    }
    all.sort_by(|one, other| (&one.name, &one.queue).cmp(&(&other.name, &other.queue)));
    Ok(all)
}

async fn pairs(store: &Shared, queue: &Name, key: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let key = keys::one_of_queue(store.prefix(), queue, key);
    let mut parts = Parts::of(store.call(redis::cmd("HGETALL").arg(key)).await?, store.place());
    let mut pairs = Vec::new();
    while !parts.is_empty() {
        pairs.push((parts.text()?, parts.bytes()?));
    }
    Ok(pairs)
}

fn read_standby(queue: &Name, name: Name, stand: &[u8], plan: &[u8]) -> Option<Standby> {
    let mut stand = Unpacked(stand);
    let (is_set, is_paused, is_planned) = (stand.byte()? > 0, stand.byte()? > 0, stand.byte()? > 0);
    let _catch_up = stand.byte()?;
    let seen = read_seen(is_planned, stand.moment()?);
    let mut moment = || stand.moment().map(|moment| Some(moment).filter(|moment| moment.as_millis() > 0));
    let (last, last_skipped, asleep_since) = (moment()?, moment()?, moment()?);
    let mut plan = Unpacked(plan);
    for _ in 0..2 {
        let bytes = plan.word()?;
        plan.take(bytes as usize)?;
    }
    Some(Standby {
        queue: queue.clone(),
        name,
        schedule: Schedule::from_json(str::from_utf8(plan.0).ok()?)?,
        origin: if is_set { Origin::Set } else { Origin::Declared },
        seen,
        last,
        last_skipped,
        is_paused,
        is_asleep: asleep_since.is_some(),
    })
}

fn read_seen(is_planned: bool, moment: Timestamp) -> Seen {
    if is_planned { Seen::Tick(moment) } else { Seen::Since(moment) }
}

/// The schedules of a queue that a script tells of, by name.
pub(super) fn read_due(queue: &Name, told: redis::Value, place: &str) -> Result<Vec<DueTick>> {
    let mut parts = Parts::of(told, place);
    let mut due = Vec::new();
    while !parts.is_empty() {
        let (name, told) = (Name::new("schedule", parts.text()?)?, parts.bytes()?);
        due.push(
            read_one(queue, name, &told).ok_or_else(|| unreadable(place, "a schedule of another form"))?,
        );
    }
    due.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(due)
}

fn read_one(queue: &Name, name: Name, told: &[u8]) -> Option<DueTick> {
    let mut told = Unpacked(told);
    let (is_planned, catch_up) = (told.byte()? > 0, told.byte()? > 0);
    let (seen, now) = (read_seen(is_planned, told.moment()?), told.moment()?);
    let (pattern, timezone) = str::from_utf8(told.0).ok()?.split_once('\n')?;
    let cron = CronSchedule { pattern: pattern.into(), timezone: timezone.into() };
    Some(DueTick { queue: queue.clone(), name, cron, catch_up, seen, now })
}

pub(super) async fn tick(store: &Shared, tick: Tick) -> Result<Ticked> {
    let Tick { due, next, job, max_pending } = tick;
    let (is_planned, seen) = match due.seen {
        Seen::Since(moment) => (false, moment),
        Seen::Tick(moment) => (true, moment),
    };
    let args = vec![
        due.name.as_bytes().to_vec(),
        Packed::default().byte(is_planned.into()).moment(seen.as_millis()).0,
        write_cron(&due.cron),
        next.as_millis().to_string().into_bytes(),
        job.map(|id| id.as_bytes().to_vec()).unwrap_or_default(),
        max_pending.map(|jobs| jobs.to_string()).unwrap_or_default().into_bytes(),
    ];
    let answer = store.run(&scripts::TICK, &due.queue, args).await?;
    Ok(match Parts::of(answer, store.place()).text()?.as_str() {
        "done" => Ticked::Done,
        "skipped" => Ticked::Skipped,
        _ => Ticked::Late,
    })
}
