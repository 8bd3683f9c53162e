//! extend: renews the leases that a worker names, and keeps house for all, for all workers may be full.

use rusqlite::{OptionalExtension, params};

use super::failure::Tried;
use super::guard;
use super::house::{all_queues, all_startable, keep_house, next_moment};
use super::prune::prune_queue;
use super::write::Write;
use crate::name::Name;
use crate::store::types::{Beat, BeatAnswer, Lapse, LeaseId, WorkerId};

/// A beat prunes at most this many jobs of each queue and state.
const MOST_PRUNED: usize = 1_000;

/// Renews, then keeps house. `awaited` are the queues for whose next moment somebody in this process waits.
pub(super) fn extend(write: &mut Write<'_>, beat: Beat, awaited: &[Name]) -> Tried<BeatAnswer> {
    guard::beat(write, beat.lease, beat.every)?;
    write.connection.prepare_cached(include_str!("sql/extend_worker.sql"))?.execute(params![
        beat.worker.as_bytes(),
        write.now.as_millis(),
        super::enqueue::millis(beat.lease),
    ])?;
    let until = (write.now + beat.lease).as_millis();
    let mut answer = BeatAnswer::default();
    for (lease, lapse) in beat.leases {
        match renew(write, beat.worker, lease, lapse, until)? {
            Some(Told::Nothing) => {}
            Some(Told::Cancelled) => answer.cancelled.push(lease),
            None => answer.lost.push(lease),
        }
    }
    let mut has_more = false;
    for (queue, _) in all_queues(write.connection)? {
        // What is left over when a bound was hit is left to the claims and to the next beat.
        if !has_more {
            let left = keep_house(write, queue)?;
            has_more = left.has_expired || left.has_more;
        }
        prune_queue(write, queue, MOST_PRUNED)?;
    }
    forget_the_dead(write)?;
    if write.ledger.hides_ready() {
        write.ledger.write(write.connection)?;
    }
    for (lane, ..) in all_startable(write.connection)? {
        write.news.ready.push(lane);
    }
    for name in awaited {
        if let Some(queue) = write.lanes.find_queue(write.connection, name)? {
            write.news.moments.push((name.clone(), next_moment(write.connection, queue)?));
        }
    }
    Ok(answer)
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

/// Forgets workers that have been silent for a day, and their last turns.
fn forget_the_dead(write: &Write<'_>) -> rusqlite::Result<()> {
    const SILENT_MS: i64 = 24 * 60 * 60 * 1_000;
    let before = write.now.as_millis() - SILENT_MS;
    let forgotten = write
        .connection
        .prepare_cached("DELETE FROM flexiq_workers WHERE beat_at < ?1")?
        .execute([before])?;
    if forgotten > 0 {
        write
            .connection
            .prepare_cached(
                "DELETE FROM flexiq_turns WHERE worker NOT IN (SELECT worker FROM flexiq_workers)",
            )?
            .execute([])?;
    }
    Ok(())
}
