//! turn: finishes, then a claim; the same number again answers the same.

use std::mem::discriminant;

use flexiq::internals::{Claimed, Finished, LeaseId, Timestamp, Turn, TurnAnswer, WorkerId};

use super::claim::{claim, lease_of};
use super::finish::finish;
use super::manner::Manner;
use super::prune::prune;
use super::world::World;

/// A turn prunes so many ended jobs of each state for each finish.
const PRUNED_PER_FINISH: usize = 2;

/// What a turn answered, without the bodies.
#[derive(Debug)]
pub(super) struct Kept {
    number: u64,
    finished: Vec<Finished>,
    leases: Vec<LeaseId>,
    more: bool,
}

pub(super) fn turn(world: &mut World, now: Timestamp, turn: &Turn) -> TurnAnswer {
    let key = (turn.worker, turn.queue.clone());
    if world.manner == Manner::Sqlite {
        world.know(now, &turn.queue);
    }
    match world.turns.get(&key) {
        Some(kept) if turn.number == kept.number => return again(world, turn.worker, kept),
        // Its answer was taken long ago: it learns nothing and changes nothing.
        Some(kept) if turn.number < kept.number => {
            return TurnAnswer {
                finished: vec![Finished::LeaseLost; turn.finishes.len()],
                ..TurnAnswer::default()
            };
        }
        _ => {}
    }
    let answer = take(world, now, turn);
    // Every store may forget a turn that did nothing: to do it again does nothing twice.
    if !answer.finished.is_empty() || !answer.claimed.is_empty() {
        let leases = answer.claimed.iter().map(|claimed| claimed.lease).collect();
        let kept = Kept { number: turn.number, finished: answer.finished.clone(), leases, more: answer.more };
        world.turns.insert(key, kept);
    }
    answer
}

fn take(world: &mut World, now: Timestamp, turn: &Turn) -> TurnAnswer {
    let mut answer = TurnAnswer::default();
    let mut grown = Vec::new();
    for end in &turn.finishes {
        let finished = finish(world, now, turn.worker, &turn.queue, end);
        if finished == Finished::Done {
            grown.push(discriminant(&world.job(end.lease.job).state));
        }
        answer.finished.push(finished);
    }
    let all = world.manner == Manner::Sqlite;
    let has_grown = |state| all || grown.contains(&discriminant(&state));
    prune(world, now, &turn.queue, turn.finishes.len() * PRUNED_PER_FINISH, has_grown);
    if let Some(wanted) = &turn.claim {
        (answer.claimed, answer.more, answer.ticks) = claim(world, now, turn.worker, &turn.queue, wanted);
    }
    answer
}

/// The same answer again, without the leases that were lost meanwhile.
fn again(world: &World, worker: WorkerId, kept: &Kept) -> TurnAnswer {
    let held = |lease: &LeaseId| -> Option<Claimed> {
        let record = world.jobs.get(&lease.job)?;
        let mut claimed = record.is_held(worker, lease.run).then(|| lease_of(world, lease.job))?;
        claimed.is_capped |= world.manner == Manner::Redis;
        Some(claimed)
    };
    TurnAnswer {
        finished: kept.finished.clone(),
        claimed: kept.leases.iter().filter_map(held).collect(),
        more: kept.more,
        ticks: Vec::new(),
    }
}
