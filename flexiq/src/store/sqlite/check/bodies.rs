//! Payloads and values that lie apart from their jobs.

use rusqlite::params;

use super::Round;
use crate::job::JobId;
use crate::store::finding::{Finding, FindingKind};
use crate::store::sqlite::codes::read_id;

impl Round<'_> {
    pub(super) fn look_at_bodies(&mut self) -> rusqlite::Result<()> {
        let left: Vec<([u8; 16], u8)> = self
            .connection
            .prepare_cached(
                "SELECT id, part
                 FROM flexiq_bodies
                 WHERE NOT EXISTS (SELECT 1 FROM flexiq_jobs AS jobs WHERE jobs.id = flexiq_bodies.id)
                 LIMIT ?1",
            )?
            .query_map([self.room() as i64], |row| Ok((read_id(row, 0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (id, part) in left {
            let found = match part {
                0 => "arguments are kept of a job that is not there",
                _ => "a value is kept of a job that is not there",
            };
            let finding = Finding::new(FindingKind::Orphan, found, "they go with their job");
            self.found(finding.of_job(JobId::from_bytes(id)), |connection| {
                connection
                    .prepare_cached("DELETE FROM flexiq_bodies WHERE id = ?1 AND part = ?2")?
                    .execute(params![id, part])
                    .map(drop)
            })?;
        }
        Ok(())
    }
}
