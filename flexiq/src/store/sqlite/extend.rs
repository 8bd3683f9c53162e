//! extend: renews the leases that a worker names, and keeps house for all, for all workers may be full.

use rusqlite::{OptionalExtension, params};

use super::declared::{forget, notice_deaths, revive};
use super::failure::Tried;
use super::guard;
use super::house::{all_queues, all_waiting, keep_house, next_moment};
use super::permits;
use super::prune::prune_queue;
use super::room;
use super::schedules::tell_due;
use super::starts::forget_over;
use super::unique;
use super::write::Write;
use crate::name::Name;
use crate::store::types::{Beat, BeatAnswer, Lapse, LeaseId, WorkerId};

/// A beat prunes at most this many jobs of each queue and state.
const MOST_PRUNED: usize = 1_000;

/// Renews, then keeps house. `awaited` are the queues for whose next moment somebody in this process waits.
pub(super) fn extend(write: &mut Write<'_>, beat: Beat, awaited: &[Name]) -> Tried<BeatAnswer> {
    guard::beat(write, beat.lease, beat.every)?;
    let until = (write.now + beat.lease).as_millis();
    let is_unknown = !lives(write, &beat, until)?;
    notice_deaths(write)?;
    forget_over(write.connection, write.now, MOST_PRUNED)?;
    let mut answer = BeatAnswer { is_unknown, ..Default::default() };
    for (lease, lapse) in beat.leases {
        match renew(write, beat.worker, lease, lapse, until)? {
            Some(Told::Nothing) => {}
            Some(Told::Cancelled) => answer.cancelled.push(lease),
            None => answer.lost.push(lease),
        }
    }
    for permit in beat.permits {
        if !permits::renew(write, &permit, until)? {
            answer.lapsed.push(permit);
        }
    }
    let mut has_more = false;
    for (queue, name) in all_queues(write.connection)? {
        // What is left over when a bound was hit is left to the claims and to the next beat.
        if !has_more {
            let left = keep_house(write, queue)?;
            if left.has_ticks {
                tell_due(write, (&name, queue), &mut answer.ticks)?;
            }
            has_more = left.has_expired || left.has_more;
        }
        prune_queue(write, queue, MOST_PRUNED)?;
        unique::forget_over(write, queue, MOST_PRUNED)?;
    }
    // Whoever is called finds its queue in order.
    permits::sweep(write)?;
    forget_the_dead(write)?;
    room::forget_gone(write)?;
    write.shows_ready()?;
    write.news.waiting.extend(all_waiting(write.connection)?);
    for name in awaited {
        if let Some(queue) = write.lanes.find_queue(write.connection, name)? {
            // When a gate opens is put in by the look at each task that waits.
            let next = next_moment(write.connection, queue)?;
            write.news.moments.push((name.clone(), next));
        }
    }
    Ok(answer)
}

/// Says that a worker lives; false if it is not known.
fn lives(write: &mut Write<'_>, beat: &Beat, until: i64) -> rusqlite::Result<bool> {
    let worker = beat.worker;
    let was_alive: Option<bool> = write
        .connection
        .prepare_cached(include_str!("sql/extend_worker.sql"))?
        .query_row(params![worker.as_bytes(), write.now.as_millis(), until, beat.kept_report()], |row| {
            row.get(0)
        })
        .optional()?;
    if was_alive == Some(false) {
        revive(write, worker)?;
    }
    Ok(was_alive.is_some())
}

/// What a renewal learned of its job.
enum Told {
    Nothing,
    Cancelled,
}

/// Renews one lease. `None` if the worker does not hold it.
fn renew(
    write: &Write<'_>,
    worker: WorkerId,
    lease: LeaseId,
    lapse: Lapse,
    until: i64,
) -> rusqlite::Result<Option<Told>> {
    let id = lease.job.as_bytes();
    let cancel_requested: Option<u8> = write
        .connection
        .prepare_cached(include_str!("sql/extend_lease.sql"))?
        .query_row(
            params![id, worker.as_bytes(), lease.run, until, u8::from(lapse == Lapse::Release)],
            |row| row.get(0),
        )
        .optional()?;
    Ok(match cancel_requested {
        None => None,
        Some(0) => Some(Told::Nothing),
        Some(told) => {
            if told == 1 {
                // The worker knows: it need not be called again.
                write
                    .connection
                    .prepare_cached("UPDATE flexiq_jobs SET cancel_requested = 2 WHERE id = ?1")?
                    .execute([id])?;
            }
            Some(Told::Cancelled)
        }
    })
}

/// Forgets workers that were found silent, and were so for a day, and their last turns.
fn forget_the_dead(write: &mut Write<'_>) -> rusqlite::Result<()> {
    const SILENT_MS: i64 = 24 * 60 * 60 * 1_000;
    let before = write.now.as_millis() - SILENT_MS;
    let forgotten: Vec<[u8; 16]> = write
        .connection
        .prepare_cached("SELECT worker FROM flexiq_workers WHERE beat_at < ?1 AND is_alive = 0")?
        .query_map([before], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for worker in &forgotten {
        forget(write, worker)?;
    }
    if !forgotten.is_empty() {
        write
            .connection
            .prepare_cached(
                "DELETE FROM flexiq_turns WHERE worker NOT IN (SELECT worker FROM flexiq_workers)",
            )?
            .execute([])?;
    }
    Ok(())
}
