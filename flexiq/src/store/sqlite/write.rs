//! What a verb has in its hands while its transaction is open.

use rusqlite::Connection;

use super::codes::state;
use super::lanes::{LaneId, Lanes, QueueId};
use super::ledger::Ledger;
use super::news::News;
use crate::clock::Timestamp;
use crate::job::JobId;

/// The open transaction, as one verb sees it.
///
/// Each move of a job goes through [`moves`](Self::moves) or one of its sisters, so that counters, bells and those who
/// wait for the end of a job never miss one.
pub(super) struct Write<'a> {
    pub(super) connection: &'a Connection,
    /// The store's moment of this transaction.
    pub(super) now: Timestamp,
    pub(super) lanes: &'a mut Lanes,
    pub(super) ledger: &'a mut Ledger,
    /// What is told once the transaction is committed.
    pub(super) news: &'a mut News,
}

impl Write<'_> {
    /// Makes the file say which lanes have something ready, and which partitions may start it.
    pub(super) fn shows_ready(&mut self) -> rusqlite::Result<()> {
        if self.ledger.hides_ready(self.connection, self.lanes)? {
            self.ledger.write(self.connection, self.lanes, self.now)?;
        }
        Ok(())
    }

    /// A new job has come in.
    pub(super) fn adds(&mut self, queue: QueueId, lane: LaneId, state: u8) {
        self.ledger.enters(queue, lane, state);
        self.notices(lane, state);
    }

    /// A job has moved from one state to another that is not an end.
    pub(super) fn moves(&mut self, queue: QueueId, lane: LaneId, from: u8, to: u8) {
        self.ledger.leaves(queue, lane, from);
        self.ledger.enters(queue, lane, to);
        self.notices(lane, to);
        self.frees(lane, from);
    }

    /// A job has ended.
    pub(super) fn ends(&mut self, job: [u8; 16], queue: QueueId, lane: LaneId, from: u8, to: u8) {
        self.ledger.leaves(queue, lane, from);
        self.ledger.enters(queue, lane, to);
        self.news.ended.push(JobId::from_bytes(job));
        self.frees(lane, from);
    }

    /// A lease has ended: a cap may have room now.
    fn frees(&mut self, lane: LaneId, from: u8) {
        if from == state::RUNNING && self.news.freed.last() != Some(&lane) {
            self.news.freed.push(lane);
        }
    }

    fn notices(&mut self, lane: LaneId, state: u8) {
        // Mostly the same lane again and again.
        if state == state::READY && self.news.ready.last() != Some(&lane) {
            self.news.ready.push(lane);
        }
    }
}
