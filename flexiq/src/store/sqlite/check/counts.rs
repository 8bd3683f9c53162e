//! The counters of lanes, of the partitions of a task together, and of queues, each against what it counts.

use rusqlite::Row;
use rusqlite::types::Value;

use super::{Round, execute};
use crate::store::finding::{Finding, FindingKind};

/// A table of counters.
struct Account {
    /// Finds its rows that are wrong: number and name of the queue, task, partition; then all counters as they are kept, then
    /// as they should be.
    wrong: &'static str,
    counters: &'static [&'static str],
    /// Sets one of its counters to ?1, of the row of the queue ?2, the task ?3 and the partition ?4.
    table: &'static str,
    key: &'static str,
}

const LANES: Account = Account {
    wrong: include_str!("../sql/check_lanes.sql"),
    counters: &["scheduled", "ready", "running", "succeeded", "dead", "cancelled", "expired"],
    table: "flexiq_lanes",
    key: "queue = ?2 AND task = ?3 AND partition = ?4",
};
const PARTITIONED: Account = Account {
    wrong: include_str!("../sql/check_partitioned.sql"),
    counters: &["scheduled", "ready", "running", "succeeded", "dead", "cancelled", "expired", "startable"],
    table: "flexiq_partitioned",
    key: "queue = ?2 AND task = ?3",
};
const QUEUES: Account = Account {
    wrong: include_str!("../sql/check_queues.sql"),
    counters: &["pending", "running", "succeeded", "dead", "cancelled", "expired"],
    table: "flexiq_queues",
    key: "queue = ?2",
};

/// A row of counters that are not all what they count.
struct Miscount {
    queue: i64,
    name: Option<String>,
    task: Option<String>,
    partition: String,
    /// Of each counter, what is kept and what is there.
    counters: Vec<(i64, i64)>,
}

fn read_miscount(row: &Row<'_>, counters: usize) -> rusqlite::Result<Miscount> {
    let counter = |at: usize| Ok((row.get(4 + at)?, row.get(4 + counters + at)?));
    Ok(Miscount {
        queue: row.get(0)?,
        name: row.get(1)?,
        task: row.get(2)?,
        partition: row.get(3)?,
        counters: (0..counters).map(counter).collect::<rusqlite::Result<_>>()?,
    })
}

impl Round<'_> {
    pub(super) fn count_lanes(&mut self) -> rusqlite::Result<()> {
        self.count(&LANES)
    }

    pub(super) fn count_partitioned(&mut self) -> rusqlite::Result<()> {
        self.count(&PARTITIONED)
    }

    pub(super) fn count_queues(&mut self) -> rusqlite::Result<()> {
        self.count(&QUEUES)
    }

    fn count(&mut self, account: &Account) -> rusqlite::Result<()> {
        let miscounts: Vec<Miscount> = self
            .connection
            .prepare(account.wrong)?
            .query_map([self.room() as i64], |row| read_miscount(row, account.counters.len()))?
            .collect::<rusqlite::Result<_>>()?;
        for miscount in miscounts {
            let counters = account.counters.iter().zip(&miscount.counters);
            for (counter, (kept, there)) in counters.filter(|(_, (kept, there))| kept != there) {
                if self.room() == 0 {
                    return Ok(());
                }
                self.miscounted(account, &miscount, counter, *kept, *there)?;
            }
        }
        Ok(())
    }

    fn miscounted(
        &mut self,
        account: &Account,
        Miscount { queue, name, task, partition, .. }: &Miscount,
        counter: &str,
        kept: i64,
        there: i64,
    ) -> rusqlite::Result<()> {
        let of = if partition.is_empty() { String::new() } else { format!(" of partition {partition:?}") };
        let mut finding = Finding::new(
            FindingKind::Count,
            format!("the count of jobs{of} that are {counter} is {kept}"),
            format!("it should be {there}"),
        );
        (finding.queue, finding.task) = (name.clone(), task.clone());
        self.found(finding, |connection| {
            let sql = format!("UPDATE {} SET {counter} = ?1 WHERE {}", account.table, account.key);
            let row = [Value::from(there), (*queue).into(), task.clone().into(), partition.clone().into()];
            execute(connection, &sql, row)
        })
    }
}
