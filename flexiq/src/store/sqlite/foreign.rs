//! What other processes write to the same file: noticed within 20 ms, while someone waits for it.
//!
//! `PRAGMA data_version` tells that another connection has committed, not what. So all that waits is looked at,
//! each queue's next moment is read anew, and those who wait for an end or a call are looked after.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::file_id::OpenedFile;
use super::house::{all_moments, all_waiting};
use super::hub::Hub;
use super::lanes::Lanes;
use crate::clock::Timestamp;

/// How often the file is looked at while someone waits: real time, whatever clock the store has.
const EVERY: Duration = Duration::from_millis(20);

/// Looks for what other processes have done to the file.
#[derive(Debug)]
pub(super) struct Foreign {
    file: OpenedFile,
    seen: Option<i64>,
    looked: Option<Instant>,
}

impl Foreign {
    pub(super) fn of(file: OpenedFile) -> Self {
        Self { file, seen: None, looked: None }
    }

    /// An error if the file was deleted, moved or replaced: what is written to it would be lost.
    pub(super) fn check_file(&self) -> rusqlite::Result<()> {
        self.file.check()
    }

    /// How long until the next look is due.
    pub(super) fn next_look(&self) -> Duration {
        self.looked.map_or(Duration::ZERO, |looked| EVERY.saturating_sub(looked.elapsed()))
    }

    /// Looks, if someone waits and the last look is long enough ago. The first look is always taken: what lies in the
    /// file from before is news, too.
    pub(super) fn look(
        &mut self,
        connection: &Connection,
        lanes: &mut Lanes,
        hub: &Hub,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        if self.looked.is_some() && !(hub.is_watched() && self.next_look().is_zero()) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let version = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.seen == Some(version) {
            return Ok(());
        }
        for (queue, task) in all_waiting(connection)? {
            hub.bells().set_right(connection, lanes, &queue, &task, now)?;
        }
        for (queue, moment) in all_moments(connection)? {
            hub.bells().put_in(&queue, moment);
        }
        for worker in hub.calls.listening() {
            if super::cancel::is_called(connection, worker)? {
                hub.calls.call(worker);
            }
        }
        hub.ends.look(connection)?;
        hub.rooms.look(connection, lanes, now)?;
        // Only now: what failed is looked at again.
        self.seen = Some(version);
        Ok(())
    }
}
