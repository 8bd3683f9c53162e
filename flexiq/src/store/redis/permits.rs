//! acquire and give_back: permits of named limits, in a slot of the limit's own.
//!
//! What a step of a limit has to tell jobs in their queues it answers as calls, and whoever asked for the step delivers
//! them. The limit remembers whom it has called, and its beat calls them again, should the deliverer have died.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::Value;

use super::codes::{millis, write_rates};
use super::wire::{Packed, Parts, Unpacked, unreadable};
use super::{Script, Shared, keys, scripts};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::name::Name;
use crate::store::permits::{Ask, Asked, GiveBack, PermitId};

/// A handle that uses a limit says so this often: far more often than one is forgotten.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// A step tells jobs that never come so often to the limit, which then calls others.
const MOST_ROUNDS: usize = 100;

/// When this handle has said last that it uses a limit, by the monotonic clock.
#[derive(Default)]
pub(super) struct InUse(Mutex<HashMap<Name, Duration>>);

pub(super) async fn acquire(store: &Shared, ask: Ask) -> Result<Asked> {
    let limit = &ask.permit.limit;
    say_in_use(store, limit).await?;
    loop {
        let args = vec![write_ask(&ask, None), millis(ask.lease).to_string().into_bytes()];
        let answer = run(store, store.timeout(), &scripts::ACQUIRE, limit, args).await?;
        let mut parts = Parts::of(answer, store.place());
        let (told, stood_in_line) = (parts.text()?, parts.number()? > 0);
        let found_gone = deliver(store, limit, read_calls(parts.value(), store.place())?).await?;
        if told == "granted" {
            if stood_in_line {
                forget_call(store, &ask).await?;
            }
            return Ok(Asked::Granted);
        }
        // Who stood before it was gone: it may have been called itself.
        if !found_gone {
            let due = told.parse().map_err(|_| unreadable(store.place(), "a time that is none"))?;
            return Ok(Asked::Refused { due: Timestamp::from_millis(due) });
        }
    }
}

/// Forgets a call that a run has not waited for: it has what it was called for.
async fn forget_call(store: &Shared, ask: &Ask) -> Result<()> {
    let key = keys::one_of_queue(store.prefix(), &ask.queue, "early");
    store.call(redis::cmd("ZREM").arg(key).arg(ask.permit.lease.job.as_bytes())).await.map(drop)
}

pub(super) async fn give_back(store: &Shared, permits: Vec<GiveBack>) -> Result<()> {
    let mut of_limit: BTreeMap<&str, Vec<&GiveBack>> = BTreeMap::new();
    for given in &permits {
        of_limit.entry(&given.ask.permit.limit).or_default().push(given);
    }
    for given in of_limit.into_values() {
        let limit = &given[0].ask.permit.limit;
        let mut args = vec![given.len().to_string().into_bytes()];
        args.extend(given.iter().map(|GiveBack { ask, hold }| write_ask(ask, *hold)));
        let answer = run(store, store.timeout(), &scripts::GIVE_BACK, limit, args).await?;
        deliver(store, limit, read_calls(answer, store.place())?).await?;
    }
    Ok(())
}

/// What a beat has seen of one limit.
pub(super) struct Seen {
    limit: Name,
    /// Permits that have lapsed.
    pub(super) lapsed: Vec<PermitId>,
    calls: Vec<Call>,
    is_empty: bool,
}

/// Renews permits of one limit, and does what time alone does to it.
pub(super) async fn renew(
    store: &Shared,
    within: Duration,
    limit: Name,
    permits: &[&PermitId],
    beat: [Vec<u8>; 2],
) -> Result<Seen> {
    let mut args = beat.to_vec();
    args.extend(permits.iter().map(|permit| write_permit(permit)));
    let answer = run(store, within, &scripts::RENEW, &limit, args).await?;
    let mut parts = Parts::of(answer, store.place());
    let (told, is_empty) = (parts.bytes()?, parts.number()? > 0);
    let calls = read_calls(parts.value(), store.place())?;
    let lapsed = permits.iter().zip(told).filter(|(_, told)| *told == b'l');
    let lapsed = lapsed.map(|(permit, _)| (*permit).clone()).collect();
    Ok(Seen { limit, lapsed, calls, is_empty })
}

/// Tells those whom a beat has called, and forgets a limit of which nothing is left.
pub(super) async fn look_after(store: &Shared, within: Duration, seen: Seen) -> Result<()> {
    deliver(store, &seen.limit, seen.calls).await?;
    if seen.is_empty {
        store.run_fleet_within(within, &scripts::FLEET_UNNAME, vec![seen.limit.as_bytes().to_vec()]).await?;
    }
    Ok(())
}

pub(super) async fn run(
    store: &Shared,
    within: Duration,
    script: &Script,
    limit: &Name,
    args: Vec<Vec<u8>>,
) -> Result<Value> {
    let mut all = vec![store.now()];
    all.extend(args);
    store.link.run(script, &keys::of_limit(store.prefix(), limit), &all, within).await
}

/// Makes beats look after a limit, from before it is used.
async fn say_in_use(store: &Shared, limit: &Name) -> Result<()> {
    let now = store.clock.elapsed();
    let said = || store.named.0.lock().unwrap_or_else(PoisonError::into_inner);
    if said().get(limit).is_some_and(|said| now.saturating_sub(*said) < SAID_EVERY) {
        return Ok(());
    }
    store.run_fleet(&scripts::FLEET_NAME, vec![limit.as_bytes().to_vec()]).await?;
    let mut said = said();
    said.retain(|_, said| now.saturating_sub(*said) < SAID_EVERY);
    said.insert(limit.clone(), now);
    Ok(())
}

/// A job that is called.
struct Call {
    due: Timestamp,
    /// The place in its queue to which it goes back if it is due at once.
    ready_at: Timestamp,
    job: [u8; 16],
    queue: Name,
    /// The key of the limit, behind its length.
    gate: Vec<u8>,
}

/// Tells jobs in their queues that they are called, and the limit which of them never come, until all are told. What is left
/// when a bound is hit is called again by the next beat. Answers whether any never comes.
async fn deliver(store: &Shared, limit: &Name, mut calls: Vec<Call>) -> Result<bool> {
    if calls.is_empty() {
        return Ok(false);
    }
    let mut found_gone = false;
    for _ in 0..MOST_ROUNDS {
        let mut of_queue: BTreeMap<Name, Vec<Call>> = BTreeMap::new();
        for call in calls {
            of_queue.entry(call.queue.clone()).or_default().push(call);
        }
        let mut gone = vec![b"0".to_vec()];
        for (queue, calls) in of_queue {
            let told = |call: &Call| {
                let to = Packed::default().bytes(&call.job).moment(call.due.as_millis());
                to.moment(call.ready_at.as_millis()).0
            };
            let answer = store.run(&scripts::CALL, &queue, calls.iter().map(told).collect()).await?;
            let told = Parts::of(answer, store.place()).bytes()?;
            let lost = calls.into_iter().zip(told).filter(|(_, told)| *told == b'g');
            gone.extend(lost.map(|(call, _)| [&call.gate[..], &call.job].concat()));
        }
        if gone.len() == 1 {
            return Ok(found_gone);
        }
        found_gone = true;
        let answer = run(store, store.timeout(), &scripts::GIVE_BACK, limit, gone).await?;
        calls = read_calls(answer, store.place())?;
        if calls.is_empty() {
            return Ok(found_gone);
        }
    }
    Ok(found_gone)
}

fn read_calls(answer: Value, place: &str) -> Result<Vec<Call>> {
    let mut parts = Parts::of(answer, place);
    let mut calls = Vec::new();
    while !parts.is_empty() {
        let bytes = parts.bytes()?;
        calls.push(read_call(&bytes).ok_or_else(|| unreadable(place, "a call that is none"))?);
    }
    Ok(calls)
}

fn read_call(bytes: &[u8]) -> Option<Call> {
    let mut call = Unpacked(bytes);
    let (due, ready_at, job) = (call.moment()?, call.moment()?, call.id()?);
    let length = call.byte()?.into();
    let queue = Name::new("queue", call.text(length)?).ok()?;
    Some(Call { due, ready_at, job, queue, gate: call.0.to_vec() })
}

fn write_ask(ask: &Ask, hold: Option<Duration>) -> Vec<u8> {
    let PermitId { key, lease, .. } = &ask.permit;
    Packed::default()
        .bytes(lease.job.as_bytes())
        .word(lease.run)
        .word(ask.max_concurrent.unwrap_or(0))
        .moment(hold.map_or(0, millis))
        .moment(ask.ready_at.as_millis())
        .text(key)
        .text(&ask.queue)
        .bytes(write_rates(&ask.rates).as_bytes())
        .0
}

fn write_permit(permit: &PermitId) -> Vec<u8> {
    let PermitId { key, lease, .. } = permit;
    Packed::default().text(key).bytes(lease.job.as_bytes()).word(lease.run).0
}
