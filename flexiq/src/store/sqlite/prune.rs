//! prune: deletes ended jobs whose time is over, and what is above the number that a queue keeps.

use rusqlite::params;

use super::codes::{read_id, state};
use super::lanes::{LaneId, QueueId};
use super::retention::KEPT;
use super::write::Write;

/// Prunes at most `most` jobs of each state of one queue.
pub(super) fn prune_queue(write: &mut Write<'_>, queue: QueueId, most: usize) -> rusqlite::Result<()> {
    let held: [i64; KEPT.len()] = write
        .connection
        .prepare_cached(include_str!("sql/prune_held.sql"))?
        .query_row([queue], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
    for ((state, held), kept) in (state::SUCCEEDED..).zip(held).zip(KEPT) {
        if held > 0 {
            prune_state(write, queue, state, held - kept, most as i64)?;
        }
    }
    Ok(())
}

/// Prunes one state: `excess` jobs whatever their time, or else those whose time is over.
fn prune_state(
    write: &mut Write<'_>,
    queue: QueueId,
    state: u8,
    excess: i64,
    most: i64,
) -> rusqlite::Result<()> {
    let now = write.now.as_millis();
    // What ends at this moment is not in excess yet: whoever waits for it is told of it first.
    let (until, ended_before, limit) =
        if excess > 0 { (i64::MAX, now, excess.min(most)) } else { (now, i64::MAX, most) };
    let pruned: Vec<([u8; 16], LaneId, bool)> = write
        .connection
        .prepare_cached(include_str!("sql/prune.sql"))?
        .query_map(params![queue, state, until, limit, ended_before], |row| {
            Ok((read_id(row, 0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    for (id, lane, has_bodies) in pruned {
        write.ledger.leaves(queue, lane, state);
        if has_bodies {
            delete_bodies(write, &id)?;
        }
    }
    Ok(())
}

/// Deletes what lies apart from a job that is deleted.
pub(super) fn delete_bodies(write: &Write<'_>, id: &[u8; 16]) -> rusqlite::Result<()> {
    write.connection.prepare_cached("DELETE FROM flexiq_bodies WHERE id = ?1")?.execute([id]).map(drop)
}
