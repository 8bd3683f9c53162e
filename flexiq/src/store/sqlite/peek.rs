//! What only a test looks at: the arguments of all jobs of a task, and when time does something next.

use rusqlite::Connection;

use super::SqliteStore;
use super::codes::read_id;
use super::read;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::job::{Job, JobId};
use crate::name::Name;
use crate::store::types::Payload;

impl SqliteStore {
    /// All stored jobs of a task, oldest first, with their payloads.
    pub(crate) async fn calls_of(&self, task: Name) -> Result<Vec<(Job, Payload)>> {
        self.read(move |connection| calls_of(connection, &task)).await
    }

    /// The next moment after this one at which time alone may make something startable.
    pub(crate) fn next_moment(&self, after: Timestamp) -> Option<Timestamp> {
        self.hub.bells().next_moment(after)
    }
}

fn calls_of(connection: &Connection, task: &str) -> rusqlite::Result<Vec<(Job, Payload)>> {
    let ids: Vec<JobId> = connection
        .prepare_cached(
            "SELECT jobs.id FROM flexiq_jobs AS jobs JOIN flexiq_lanes AS lanes ON lanes.lane = jobs.lane
             WHERE lanes.task = ?1
             ORDER BY jobs.id",
        )?
        .query_map([task], |row| Ok(JobId::from_bytes(read_id(row, 0)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut calls = Vec::with_capacity(ids.len());
    for id in ids {
        if let (Some(job), Some(payload)) = (read::job(connection, id)?, read::payload(connection, id)?) {
            calls.push((job, payload));
        }
    }
    Ok(calls)
}
