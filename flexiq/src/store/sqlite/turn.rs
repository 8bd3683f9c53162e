//! turn: a worker's finishes and its next claim, in one step that may be sent again.
//!
//! The newest number of each worker and queue is kept with what it answered, bodies aside.

use rusqlite::{OptionalExtension, params};

use super::claim::claim;
use super::codes::unreadable;
use super::failure::Tried;
use super::finish::finish;
use super::heads::read_claimed;
use super::lanes::QueueId;
use super::prune::prune_queue;
use super::write::Write;
use crate::job::JobId;
use crate::store::types::{Finished, LeaseId, Turn, TurnAnswer, WorkerId};

/// A turn prunes this many ended jobs for each that it ends, so that pruning keeps up with any rate of work.
const PRUNED_PER_FINISH: usize = 2;

/// Finishes and claims. `waiting_workers` could start something of the claim, too.
pub(super) fn turn(write: &mut Write<'_>, turn: Turn, waiting_workers: usize) -> Tried<TurnAnswer> {
    let queue = write.lanes.queue(write.connection, &turn.queue)?;
    if let Some(kept) = kept_answer(write, turn.worker, queue)?
        && turn.number <= kept.number
    {
        return Ok(answer_again(write, &turn, kept)?);
    }
    let finishes = turn.finishes.len();
    let finished = finish(write, turn.worker, &turn.queue, queue, &turn.finishes)?;
    let mut answer = TurnAnswer { finished, ..Default::default() };
    if finishes > 0 {
        prune_queue(write, queue, finishes * PRUNED_PER_FINISH)?;
    }
    if let Some(wanted) = turn.claim {
        (answer.claimed, answer.more, answer.ticks) =
            claim(write, turn.worker, &turn.queue, queue, wanted, waiting_workers)?;
    }
    // A turn that did nothing may as well be done again. Of what was due somebody is told anew.
    if finishes > 0 || !answer.claimed.is_empty() {
        write.connection.prepare_cached(include_str!("sql/turn_keep.sql"))?.execute(params![
            turn.worker.as_bytes(),
            queue,
            turn.number as i64,
            encode(&answer),
        ])?;
    }
    Ok(answer)
}

/// What the newest turn of a worker in a queue answered.
struct Kept {
    number: u64,
    more: bool,
    finished: Vec<Finished>,
    leases: Vec<LeaseId>,
}

fn kept_answer(write: &Write<'_>, worker: WorkerId, queue: QueueId) -> rusqlite::Result<Option<Kept>> {
    write
        .connection
        .prepare_cached("SELECT number, answer FROM flexiq_turns WHERE worker = ?1 AND queue = ?2")?
        .query_row(params![worker.as_bytes(), queue], |row| {
            let number: i64 = row.get(0)?;
            decode(number as u64, row.get_ref(1)?.as_blob()?).ok_or_else(|| unreadable("a kept turn".into()))
        })
        .optional()
}

/// The answer of the turn that is kept; an older number learns nothing, for its answer was taken long ago.
fn answer_again(write: &mut Write<'_>, turn: &Turn, kept: Kept) -> rusqlite::Result<TurnAnswer> {
    if turn.number < kept.number {
        return Ok(TurnAnswer {
            finished: vec![Finished::LeaseLost; turn.finishes.len()],
            ..Default::default()
        });
    }
    let mut claimed = Vec::with_capacity(kept.leases.len());
    for lease in kept.leases {
        // A lease that was lost meanwhile is not handed out again.
        claimed.extend(read_claimed(write, turn.worker, lease)?);
    }
    Ok(TurnAnswer { finished: kept.finished, claimed, more: kept.more, ticks: Vec::new() })
}

/// `more`, the number of finishes, a byte for each, then id and run of each lease.
fn encode(answer: &TurnAnswer) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(5 + answer.finished.len() + 20 * answer.claimed.len());
    bytes.push(u8::from(answer.more));
    bytes.extend((answer.finished.len() as u32).to_le_bytes());
    bytes.extend(answer.finished.iter().map(|finished| u8::from(*finished == Finished::LeaseLost)));
    for claimed in &answer.claimed {
        bytes.extend(claimed.lease.job.as_bytes());
        bytes.extend(claimed.lease.run.to_le_bytes());
    }
    bytes
}

fn decode(number: u64, bytes: &[u8]) -> Option<Kept> {
    let (more, bytes) = bytes.split_first()?;
    let (finishes, bytes) = bytes.split_first_chunk::<4>()?;
    let (finished, leases) = bytes.split_at_checked(u32::from_le_bytes(*finishes) as usize)?;
    let read_lease = |bytes: &[u8]| {
        let (job, run) = bytes.split_first_chunk::<16>()?;
        Some(LeaseId { job: JobId::from_bytes(*job), run: u32::from_le_bytes(run.try_into().ok()?) })
    };
    Some(Kept {
        number,
        more: *more != 0,
        finished: finished
            .iter()
            .map(|&lost| if lost == 0 { Finished::Done } else { Finished::LeaseLost })
            .collect(),
        leases: leases.chunks(20).map(read_lease).collect::<Option<_>>()?,
    })
}
