//! What time alone does to the jobs of a queue. Every claim does it for its queue, every beat for all.
//!
//! Leases first, then expiries, then due times: a job that is given back too late for its expiry does not start, nor
//! one that has become due too late.

use flexiq::internals::{Lapse, Name, Timestamp, is_poison};
use flexiq::{DeadReason, JobId, SetbackKind, State};

use super::manner::Manner;
use super::record::{Cancel, Record};
use super::turns;
use super::world::World;

const MOST_MOVED: usize = 1_000;
const MOST_REAPED: usize = 100;

/// What a bound has left undone.
pub(super) struct Left {
    /// Jobs that have expired still stand among the ready.
    pub(super) has_expired: bool,
    /// Other moves are due.
    pub(super) has_more: bool,
}

/// Moves what is overdue.
pub(super) fn keep_house(world: &mut World, now: Timestamp, queue: &Name) -> Left {
    if world.manner == Manner::Sqlite {
        world.gates.forget_holds(now, queue);
    }
    let reaped = reap(world, now, queue);
    turns::settle(world);
    let expired = [is_scheduled, is_ready].map(|of| expire(world, now, queue, of));
    turns::settle(world);
    let promoted = promote(world, now, queue);
    Left {
        has_expired: expired.contains(&MOST_MOVED),
        has_more: reaped == MOST_REAPED || promoted == MOST_MOVED,
    }
}

/// The moment at which a running job's lease is over.
pub(super) fn lapse(record: &Record) -> Option<Timestamp> {
    record.lease.as_ref().map(|lease| lease.until)
}

/// The moment at which a waiting job is due.
pub(super) fn due(record: &Record) -> Option<Timestamp> {
    is_scheduled(record.state).then_some(record.due_at)
}

/// The moment at which a pending job's time is over.
pub(super) fn expiry(record: &Record) -> Option<Timestamp> {
    record.expires_at.filter(|_| record.state.is_pending())
}

fn is_scheduled(state: State) -> bool {
    matches!(state, State::Scheduled(_))
}

fn is_ready(state: State) -> bool {
    state == State::Ready
}

fn reap(world: &mut World, now: Timestamp, queue: &Name) -> usize {
    let lapsed = world.overdue(queue, now, MOST_REAPED, lapse);
    // Only who finds something to reap asks the guard, for asking is what makes it notice a silence.
    if lapsed.is_empty() || !world.guards.of_queue(queue).may_reap(now) {
        return 0;
    }
    for id in &lapsed {
        reap_one(world.job(*id), now);
    }
    lapsed.len()
}

fn reap_one(record: &mut Record, now: Timestamp) {
    let lease = record.lease.take().expect("a lapsed job has a lease");
    if record.cancel != Cancel::No {
        return record.cancel(now);
    }
    if lease.lapse == Lapse::Release {
        return record.release();
    }
    record.losses += 1;
    let is_dead = is_poison(record.losses, lease.max_losses);
    let words = format!("worker {} did not renew its lease", lease.worker);
    let death = is_dead.then_some(DeadReason::Losses);
    let attempt = record.failures + 1;
    record.chronicle.set_back((now, record.runs, attempt, SetbackKind::Loss, words, death));
    // It has been started in earnest.
    record.expires_at = None;
    if is_dead {
        record.die(now, DeadReason::Losses);
    } else {
        record.release();
    }
}

fn expire(world: &mut World, now: Timestamp, queue: &Name, of: fn(State) -> bool) -> usize {
    let over = |record: &Record| expiry(record).filter(|_| of(record.state));
    let expired: Vec<JobId> = world.overdue(queue, now, MOST_MOVED, over);
    for id in &expired {
        world.job(*id).expire(now);
    }
    expired.len()
}

fn promote(world: &mut World, now: Timestamp, queue: &Name) -> usize {
    let promoted = world.overdue(queue, now, MOST_MOVED, due);
    for id in &promoted {
        // As old as its due time, however late this comes.
        world.job(*id).state = State::Ready;
    }
    promoted.len()
}
