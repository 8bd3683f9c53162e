//! acquire and give_back: the permits of named limits, and the line before each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use flexiq::internals::{Ask, Asked, Beat, GiveBack, Name, PermitId, RESERVED, Timestamp, fallback};
use flexiq::{JobId, ScheduledReason, State};

use super::line::{Named, Opening, Waiting};
use super::world::World;

/// A limit, and a key of it: each is a limit of its own.
pub(super) type Key = (Name, String);

/// Calls of running jobs are kept for so long.
const KEPT: Duration = Duration::from_secs(60 * 60);

pub(super) fn acquire(world: &mut World, now: Timestamp, ask: &Ask) -> Asked {
    let of = key_of(&ask.permit);
    let (job, run) = (ask.permit.lease.job, ask.permit.lease);
    // The answer may have been lost: it lasts from this one.
    if let Some(until) = named(world, &of).permits.get_mut(&run) {
        *until = now + ask.lease;
        return Asked::Granted;
    }
    free_lapsed(world, now, |(limit, _)| *limit == of.0);
    let limit = named(world, &of);
    let stood = limit.place_of(job).is_some();
    if !stood {
        limit.line.push(Waiting::new(ask));
    }
    let place = limit.place_of(job).expect("it stands in line");
    limit.line[place].asks(ask);
    let is_granted = match limit.line[place].reserved_until {
        // Its permit is reserved: only a hold has come since, or other numbers.
        Some(_) => limit.opening_for_called(&limit.line[place], now) == Opening::Now,
        None => advance(world, now, &of, Some(job)),
    };
    if is_granted { grant(world, now, ask, stood) } else { refuse(world, now, ask) }
}

fn grant(world: &mut World, now: Timestamp, ask: &Ask, stood: bool) -> Asked {
    world.starters += 1;
    let (step, of, lease) = (world.starters, key_of(&ask.permit), ask.permit.lease);
    let limit = named(world, &of);
    limit.leave(lease.job);
    limit.charge(step, &ask.rates, now);
    limit.permits.insert(lease, now + ask.lease);
    world.guards.use_limit(world.manner, now, &of.0);
    if stood {
        // It has what it may have been called for while it ran.
        world.calls.remove(&lease.job);
    }
    advance(world, now, &of, None);
    Asked::Granted
}

fn refuse(world: &mut World, now: Timestamp, ask: &Ask) -> Asked {
    let limit = named(world, &key_of(&ask.permit));
    let own = limit.place_of(ask.permit.lease.job).expect("it stands in line");
    limit.line[own].reserved_until = None;
    let before = limit.line[..own].iter().filter(|other| other.reserved_until.is_none()).count() as u64;
    let mut opens = None;
    if before == 0 {
        opens = limit.opening(&limit.line[own], now).by_time();
        limit.opens_at = opens;
    }
    let due = opens.unwrap_or_else(|| now + fallback(before, ask.max_concurrent, &ask.rates));
    limit.line[own].due = Some(due);
    Asked::Refused { due }
}

pub(super) fn give_back(world: &mut World, now: Timestamp, permits: &[GiveBack]) {
    let mut touched = BTreeSet::new();
    for GiveBack { ask, hold } in permits {
        let of = key_of(&ask.permit);
        let limit = named(world, &of);
        let was_held = limit.permits.remove(&ask.permit.lease).is_some();
        if let Some(length) = hold {
            limit.held_until = limit.held_until.max(Some(now + *length));
            limit.leave(ask.permit.lease.job);
            limit.line.insert(0, Waiting::new(ask));
        }
        if was_held || hold.is_some() {
            touched.insert(of);
        }
    }
    for limit in permits.iter().map(|given| &given.ask.permit.limit).collect::<BTreeSet<_>>() {
        free_lapsed(world, now, |(other, _)| other == limit);
    }
    for of in touched {
        advance(world, now, &of, None);
    }
}

/// Renews a permit; false if it has lapsed.
pub(super) fn renew(world: &mut World, permit: &PermitId, until: Timestamp) -> bool {
    let held = named(world, &key_of(permit)).permits.get_mut(&permit.lease);
    held.map(|held| *held = until).is_some()
}

/// Does what time alone does to named limits.
pub(super) fn sweep(world: &mut World, now: Timestamp, beat: &Beat) {
    let in_use =
        keys(&world.named, |_, limit| !limit.is_empty()).into_iter().map(|(limit, _)| limit).collect();
    world.guards.beat_limits(now, beat, &in_use);
    world.calls.retain(|_, (_, at)| *at > now - KEPT);
    free_lapsed(world, now, |_| true);
    let has_opened = |limit: &Named| limit.opens_at.is_some_and(|at| at <= now);
    for of in keys(&world.named, |_, limit| has_opened(limit)) {
        advance(world, now, &of, None);
    }
    for limit in world.named.values_mut() {
        limit.held_until = limit.held_until.filter(|&until| until > now);
    }
}

/// Frees permits that nobody has renewed, and those that were reserved for jobs which did not come.
fn free_lapsed(world: &mut World, now: Timestamp, is_meant: impl Fn(&Key) -> bool) {
    let is_late = |until: Option<Timestamp>| until.is_some_and(|until| until <= now);
    let mut freed = keys(&world.named, |of, limit| {
        is_meant(of) && limit.line.iter().any(|waiting| is_late(waiting.reserved_until))
    });
    for of in &freed {
        named(world, of).line.retain(|waiting| !is_late(waiting.reserved_until));
    }
    let has_lapsed = |limit: &Named| limit.permits.values().any(|&until| is_late(Some(until)));
    // Only who finds something to free asks the guard.
    for of in keys(&world.named, |of, limit| is_meant(of) && has_lapsed(limit)) {
        if world.guards.of_limit(&of.0).may_reap(now) {
            named(world, &of).permits.retain(|_, until| !is_late(Some(*until)));
            freed.insert(of);
        }
    }
    for of in freed {
        advance(world, now, &of, None);
    }
}

/// Calls those who are first in line for as long as there is room. Answers whether the one who is here is the next who may
/// have a permit: that one is not called.
fn advance(world: &mut World, now: Timestamp, of: &Key, here: Option<JobId>) -> bool {
    loop {
        let limit = named(world, of);
        let Some(first) = limit.line.iter().position(|waiting| waiting.reserved_until.is_none()) else {
            limit.opens_at = None;
            return false;
        };
        let opening = limit.opening(&limit.line[first], now);
        let job = limit.line[first].job;
        if here == Some(job) {
            return opening == Opening::Now;
        }
        limit.opens_at = opening.by_time();
        let due = match opening {
            Opening::Now => now,
            Opening::At(at) if limit.line[first].due != Some(at) => at,
            // It was told, or waits to be called.
            Opening::At(_) | Opening::ByCall => return false,
        };
        limit.line[first].due = Some(due);
        let ready_at = limit.line[first].ready_at;
        if !call(world, now, job, due, ready_at) {
            named(world, of).line.remove(first);
        } else if opening == Opening::Now {
            named(world, of).line[first].reserved_until = Some(now + RESERVED);
        } else {
            return false;
        }
    }
}

/// Makes a job that waits for a limit due; one that runs, when its run has ended. False if it never comes.
///
/// One that is due at once goes back to its old place.
fn call(world: &mut World, now: Timestamp, job: JobId, due: Timestamp, ready_at: Timestamp) -> bool {
    let Some(record) = world.jobs.get_mut(&job) else { return false };
    match record.state {
        State::Scheduled(ScheduledReason::Limit) => {
            record.wait_until(due, now, record.state);
            if due <= now {
                record.due_at = ready_at.min(now);
            }
        }
        State::Running => drop(world.calls.insert(job, (due, now))),
        // It comes by itself.
        State::Ready => {}
        _ => return false,
    }
    true
}

fn key_of(permit: &PermitId) -> Key {
    (permit.limit.clone(), permit.key.clone())
}

fn named<'a>(world: &'a mut World, of: &Key) -> &'a mut Named {
    world.named.entry(of.clone()).or_default()
}

fn keys(all: &BTreeMap<Key, Named>, is_it: impl Fn(&Key, &Named) -> bool) -> BTreeSet<Key> {
    all.iter().filter(|(of, limit)| is_it(of, limit)).map(|(of, _)| of.clone()).collect()
}
