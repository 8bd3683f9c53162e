//! admission: how many new jobs a queue or a partition still takes in, by its `max_pending` and by who stands in line.

use super::gates::{gate_name, scope};
use super::lanes::{LaneId, QueueId};
use super::limits::set_max_pending;
use super::room::kept;
use super::write::Write;
use crate::error::Error;
use crate::store::types::{Enqueue, NewJob};

/// How many new jobs a queue or a partition still takes in. Those that are refused undo their whole batch.
pub(super) struct Admission {
    /// Without `max_pending` there is no bound, and nothing was counted.
    bound: Option<Bound>,
}

struct Bound {
    max_pending: i64,
    /// Before this batch.
    pending: i64,
    /// For producers that stand before this one.
    kept: i64,
    new: i64,
}

impl Admission {
    pub(super) fn of_queue(write: &Write<'_>, batch: &Enqueue, queue: QueueId) -> rusqlite::Result<Self> {
        let set = set_max_pending(write.connection, scope::QUEUE, &batch.queue)?;
        let Some(max_pending) = set.or(batch.max_pending.map(number)) else {
            return Ok(Self { bound: None });
        };
        let written: i64 = write
            .connection
            .prepare_cached("SELECT pending FROM flexiq_queues WHERE queue = ?1")?
            .query_row([queue], |row| row.get(0))?;
        let pending = written + write.ledger.pending(queue);
        let kept = kept(write, queue, "", batch.producer)?;
        Ok(Self { bound: Some(Bound { max_pending, pending, kept, new: 0 }) })
    }

    pub(super) fn of_partition(
        write: &Write<'_>,
        batch: &Enqueue,
        queue: QueueId,
        job: &NewJob,
        lane: LaneId,
    ) -> rusqlite::Result<Self> {
        let name = gate_name(&job.task, &job.partition);
        let set = set_max_pending(write.connection, scope::PARTITION, &name)?;
        let declared = job.max_pending_per_partition.map(number);
        let Some(max_pending) = set.or(declared) else { return Ok(Self { bound: None }) };
        let written: i64 = write
            .connection
            .prepare_cached("SELECT scheduled + ready FROM flexiq_lanes WHERE lane = ?1")?
            .query_row([lane], |row| row.get(0))?;
        let pending = written + write.ledger.pending_of(lane);
        let kept = kept(write, queue, &name, batch.producer)?;
        Ok(Self { bound: Some(Bound { max_pending, pending, kept, new: 0 }) })
    }

    /// Admits one that is new.
    pub(super) fn admit(&mut self, full: impl FnOnce(u64, u64) -> Error) -> Result<(), Error> {
        let Some(Bound { max_pending, pending, kept, new }) = &mut self.bound else { return Ok(()) };
        *new += 1;
        if *pending + *kept + *new <= *max_pending {
            return Ok(());
        }
        let count = |jobs: i64| u64::try_from(jobs).unwrap_or(0);
        Err(full(count(*max_pending), count(*pending)))
    }
}

/// A number of jobs for a column.
pub(super) fn number(jobs: u64) -> i64 {
    i64::try_from(jobs).unwrap_or(i64::MAX)
}
