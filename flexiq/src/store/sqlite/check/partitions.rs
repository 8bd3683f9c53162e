//! Partitions: whether each stands among the turns of its task as its jobs and its gate say.

use rusqlite::types::Value;
use rusqlite::{Row, params};

use super::{Round, execute};
use crate::store::finding::{Finding, FindingKind};
use crate::store::sqlite::gates::{Passage, StoredGate};
use crate::store::sqlite::lanes::{Lane, LaneId, QueueId, read_name};
use crate::store::sqlite::partitions::settle;

/// A partition that may be wrong.
struct Suspect {
    queue: QueueId,
    id: LaneId,
    lane: Lane,
    running: i64,
    /// That it is wrong can be seen without its gate.
    is_wrong: bool,
}

fn read_suspect(row: &Row<'_>) -> rusqlite::Result<Suspect> {
    Ok(Suspect {
        queue: row.get(0)?,
        id: row.get(1)?,
        lane: Lane {
            queue: read_name("queue", row.get_ref(2)?.as_str()?)?,
            task: read_name("task", row.get_ref(3)?.as_str()?)?,
            partition: row.get(4)?,
        },
        running: row.get(5)?,
        is_wrong: row.get(6)?,
    })
}

impl Round<'_> {
    pub(super) fn look_at_partitions(&mut self) -> rusqlite::Result<()> {
        self.look_for_tasks()?;
        self.look_for_empty()?;
        let suspects: Vec<Suspect> = self
            .connection
            .prepare(include_str!("../sql/check_turns.sql"))?
            .query_map([], read_suspect)?
            .collect::<rusqlite::Result<_>>()?;
        for suspect in suspects {
            if self.room() == 0 {
                break;
            }
            if suspect.is_wrong || self.is_forgotten(&suspect)? {
                self.out_of_turn(&suspect)?;
            }
        }
        Ok(())
    }

    /// Whether a partition that is taken for shut is open, or will be opened by time and nobody looks then.
    fn is_forgotten(&self, suspect: &Suspect) -> rusqlite::Result<bool> {
        let Suspect { queue, lane: Lane { task, partition, .. }, running, .. } = suspect;
        let gate = StoredGate::of_partition(self.connection, *queue, task, partition, *running)?;
        let passage = Passage::ask_exactly(gate, self.connection, 1, self.now)?;
        Ok(passage.room() > 0 || passage.opens_at().is_some())
    }

    fn out_of_turn(&mut self, Suspect { queue, id, lane, .. }: &Suspect) -> rusqlite::Result<()> {
        let finding = Finding::new(
            FindingKind::Turn,
            format!(
                "partition {:?} stands among the turns otherwise than its jobs and its gate say",
                lane.partition
            ),
            "it is set right by whatever changes one of them",
        );
        let now = self.now;
        self.found(finding.in_queue(&*lane.queue).of_task(&*lane.task), |connection| {
            settle(connection, (*queue, *id), lane, now)
        })
    }

    /// Tasks whose partitions are there, but not what they have in common.
    fn look_for_tasks(&mut self) -> rusqlite::Result<()> {
        let missing: Vec<(QueueId, String, String)> = self
            .connection
            .prepare(include_str!("../sql/check_tasks.sql"))?
            .query_map([self.room() as i64], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (queue, name, task) in missing {
            let finding = Finding::new(
                FindingKind::Turn,
                "what its partitions have in common is gone",
                "their turns are counted there",
            );
            self.found(finding.in_queue(name).of_task(&task), |connection| {
                connection
                    .prepare_cached(
                        "INSERT INTO flexiq_partitioned (queue, task, served)
                         SELECT ?1, ?2, coalesce(max(turn), 0) / 2 FROM flexiq_lanes WHERE queue = ?1 AND task = ?2",
                    )?
                    .execute(params![queue, task])
                    .map(drop)
            })?;
        }
        Ok(())
    }

    /// Partitions of which nothing is there.
    fn look_for_empty(&mut self) -> rusqlite::Result<()> {
        let empty: Vec<(LaneId, Option<String>, String, String)> = self
            .connection
            .prepare(include_str!("../sql/check_empty.sql"))?
            .query_map([self.room() as i64], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (lane, queue, task, partition) in empty {
            let mut finding = Finding::new(
                FindingKind::Orphan,
                format!("partition {partition:?} is kept, of which no job is there"),
                "it goes with its last job",
            );
            finding.queue = queue;
            self.found(finding.of_task(task), |connection| {
                execute(connection, "DELETE FROM flexiq_lanes WHERE lane = ?1", [Value::from(lane)])
            })?;
        }
        Ok(())
    }
}
