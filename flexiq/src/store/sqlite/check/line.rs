//! The lines of named limits: whether whoever is first in one will be told when its turn comes.

use rusqlite::params;

use super::Round;
use crate::store::finding::{Finding, FindingKind};
use crate::store::sqlite::line::{Line, Opening};

impl Round<'_> {
    pub(super) fn look_at_lines(&mut self) -> rusqlite::Result<()> {
        let lines: Vec<(String, String)> = self
            .connection
            .prepare(include_str!("../sql/check_limits.sql"))?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (limit, key) in lines {
            if self.room() == 0 {
                break;
            }
            let line = Line::new(self.connection, self.now, &limit, &key);
            let Some(first) = line.first()? else { continue };
            // Whoever opens it by a call makes a step, which looks.
            if line.opening(&first)? == Opening::ByCall {
                continue;
            }
            let finding = Finding::new(
                FindingKind::NamedLimit,
                format!(
                    "whoever is first in the line of {limit:?} may have a permit, or time will let it, and nobody looks"
                ),
                "it is called",
            );
            let now = self.now;
            // The next beat, or whoever asks for a permit, calls as many as there is room for.
            self.found(finding, |connection| {
                connection
                    .prepare_cached(
                        "INSERT INTO flexiq_named (name, key, opens_at) VALUES (?1, ?2, ?3)
                         ON CONFLICT (name, key) DO UPDATE SET opens_at = excluded.opens_at",
                    )?
                    .execute(params![limit, key, now.as_millis()])
                    .map(drop)
            })?;
        }
        Ok(())
    }
}
