//! extend: a sign of life; then the leases and permits that it names, then the house of every queue, then named limits.

use flexiq::internals::{Beat, BeatAnswer, Timestamp};

use super::house::keep_house;
use super::manner::Manner;
use super::prune::prune;
use super::record::Cancel;
use super::world::World;
use super::{gates, permits, schedules, unique, workers};

/// A beat prunes so many jobs of each queue and state.
const MOST_PRUNED: usize = 1_000;

pub(super) fn extend(world: &mut World, now: Timestamp, beat: &Beat) -> BeatAnswer {
    world.guards.beat(now, beat.lease, beat.every);
    let is_unknown = !workers::beat(world, now, beat);
    workers::notice_deaths(world, now);
    workers::publish(world, now);
    if world.manner == Manner::Sqlite {
        // Where each queue has a copy of what is declared, a newer one is brought behind the house.
        schedules::settle(world, now);
    }
    gates::forget_over(world, now);
    world.named.values_mut().for_each(|limit| limit.forget_over(now));
    let mut answer = BeatAnswer { is_unknown, ..BeatAnswer::default() };
    renew(world, now, beat, &mut answer);
    for permit in &beat.permits {
        if !permits::renew(world, permit, now + beat.lease) {
            answer.lapsed.push(permit.clone());
        }
    }
    let mut is_bounded = false;
    for queue in world.queues.clone() {
        // A step is bounded over all queues: once a bound was hit, the rest is left to the claims and the next beat.
        if !is_bounded {
            let was_due = schedules::is_due(world, now, &queue);
            let left = keep_house(world, now, &queue);
            if was_due {
                answer.ticks.extend(schedules::tell_due(world, now, &queue));
            }
            is_bounded = left.has_expired || left.has_more;
        }
        if world.manner == Manner::Redis {
            world.gates.forget_holds(now, &queue);
        }
        prune(world, now, &queue, MOST_PRUNED, |_| true);
        unique::forget_over(world, now, &queue, MOST_PRUNED);
    }
    permits::sweep(world, now, beat);
    workers::forget_the_silent(world, now);
    answer
}

fn renew(world: &mut World, now: Timestamp, beat: &Beat, answer: &mut BeatAnswer) {
    for (id, lapse) in &beat.leases {
        let Some(record) = world.held(beat.worker, *id) else {
            answer.lost.push(*id);
            continue;
        };
        if let Some(lease) = &mut record.lease {
            lease.until = now + beat.lease;
            lease.lapse = *lapse;
        }
        if record.cancel != Cancel::No {
            record.cancel = Cancel::Told;
            answer.cancelled.push(*id);
        }
    }
}
