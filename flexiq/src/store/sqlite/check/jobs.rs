//! The rows of jobs, each for itself: whether its state and its columns go together.

use std::fmt::Write as _;
use std::sync::LazyLock;

use super::{Round, execute};
use crate::job::JobId;
use crate::store::finding::{Finding, FindingKind};
use crate::store::sqlite::codes::read_id;

/// What no row may be.
struct Rule {
    kind: FindingKind,
    /// The condition, in SQL.
    is_broken: &'static str,
    found: &'static str,
    expected: &'static str,
    /// What is set to repair it: ?2 is now, ?3 the length of a lease, both in milliseconds.
    repair: Option<&'static str>,
}

const RULES: [Rule; 12] = [
    // A lease that is nobody's lapses at once.
    Rule {
        kind: FindingKind::NoLease,
        is_broken: "state = 2 AND (until IS NULL OR worker IS NULL)",
        found: "it is running without a lease",
        expected: "a run has one, which its worker renews",
        repair: Some("until = CASE WHEN worker IS NULL THEN ?2 ELSE ?2 + ?3 END"),
    },
    Rule {
        kind: FindingKind::Contradiction,
        is_broken: "state = 2 AND (started_at IS NULL OR ended_at IS NOT NULL OR runs = 0)",
        found: "it is running, and has not started or has ended",
        expected: "what is running has started, and not ended",
        repair: Some("started_at = coalesce(started_at, ?2), ended_at = NULL, runs = max(runs, 1)"),
    },
    Rule {
        kind: FindingKind::Contradiction,
        is_broken: "state <= 1 AND (until IS NOT NULL OR ended_at IS NOT NULL)",
        found: "it is pending, and has a lease or an end",
        expected: "what is pending has neither",
        repair: Some("until = NULL, ended_at = NULL"),
    },
    Rule {
        kind: FindingKind::Contradiction,
        is_broken: "state <= 1 AND cancel_requested <> 0",
        found: "it is pending, and was told to stop",
        expected: "only what is running is told so",
        repair: Some("cancel_requested = 0"),
    },
    Rule {
        kind: FindingKind::Contradiction,
        is_broken: "state >= 3 AND (until IS NULL OR ended_at IS NULL)",
        found: "it has ended, and nothing says when or until when it is kept",
        expected: "what has ended is kept for a time",
        repair: Some(
            "ended_at = coalesce(ended_at, ?2),
             until = coalesce(until, ?2 + 86400000 * CASE WHEN state = 4 THEN 90 ELSE 1 END)",
        ),
    },
    Rule {
        kind: FindingKind::Contradiction,
        is_broken: "(state = 0 AND reason NOT BETWEEN 0 AND 3) OR (state = 4 AND reason NOT BETWEEN 0 AND 4)",
        found: "the reason of its state is none that there is",
        expected: "a job is scheduled or dead for a reason",
        repair: Some("reason = 0"),
    },
    Rule {
        kind: FindingKind::Contradiction,
        is_broken: "queue <> (SELECT lanes.queue FROM flexiq_lanes AS lanes WHERE lanes.lane = flexiq_jobs.lane)",
        found: "it lies in another queue than its lane",
        expected: "both are one",
        repair: Some(
            "queue = (SELECT lanes.queue FROM flexiq_lanes AS lanes WHERE lanes.lane = flexiq_jobs.lane)",
        ),
    },
    Rule {
        kind: FindingKind::Foreign,
        is_broken: "state NOT BETWEEN 0 AND 6",
        found: "its state is none that there is",
        expected: "it is one of seven",
        repair: None,
    },
    Rule {
        kind: FindingKind::Lost,
        is_broken: "NOT EXISTS (
                SELECT 1
                FROM flexiq_lanes AS lanes
                JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
                WHERE lanes.lane = flexiq_jobs.lane
            )",
        found: "the names of its task and queue are gone",
        expected: "it is a job of a task in a queue",
        repair: None,
    },
    Rule {
        kind: FindingKind::Lost,
        is_broken: "payload IS NULL
            AND NOT EXISTS (SELECT 1 FROM flexiq_bodies AS bodies WHERE bodies.id = flexiq_jobs.id AND part = 0)",
        found: "its arguments are gone",
        expected: "a job has some",
        repair: None,
    },
    Rule {
        kind: FindingKind::Lost,
        is_broken: "state = 3 AND value_kind IS NULL",
        found: "it has succeeded, and its value is gone",
        expected: "it is kept with the job",
        repair: None,
    },
    Rule {
        kind: FindingKind::Lost,
        is_broken: "state = 3 AND value_kind = 1 AND value IS NULL
            AND NOT EXISTS (SELECT 1 FROM flexiq_bodies AS bodies WHERE bodies.id = flexiq_jobs.id AND part = 1)",
        found: "it has succeeded, and its value is gone",
        expected: "it is kept with the job",
        repair: None,
    },
];

/// One walk through all jobs, which answers those that break a rule, with a bit for each that they break.
static BROKEN: LazyLock<String> = LazyLock::new(|| {
    let mut bits = String::from("0");
    for (number, rule) in RULES.iter().enumerate() {
        let _ = write!(bits, " + CASE WHEN {} THEN {} ELSE 0 END", rule.is_broken, 1_u32 << number);
    }
    format!(
        "SELECT jobs.id, jobs.broken, queues.name, lanes.task
         FROM (SELECT id, queue, lane, {bits} AS broken FROM flexiq_jobs) AS jobs
         LEFT JOIN flexiq_lanes AS lanes ON lanes.lane = jobs.lane
         LEFT JOIN flexiq_queues AS queues ON queues.queue = coalesce(lanes.queue, jobs.queue)
         WHERE jobs.broken <> 0
         LIMIT ?1"
    )
});

type Broken = ([u8; 16], u32, Option<String>, Option<String>);

impl Round<'_> {
    pub(super) fn look_at_jobs(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(&BROKEN)?;
        let broken: Vec<Broken> = statement
            .query_map([self.room() as i64], |row| {
                Ok((read_id(row, 0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?
            .collect::<rusqlite::Result<_>>()?;
        for (id, bits, queue, task) in broken {
            let rules = RULES.iter().enumerate().filter(|(number, _)| bits & (1 << number) != 0);
            for (_, rule) in rules.take(self.room()) {
                let mut finding =
                    Finding::new(rule.kind, rule.found, rule.expected).of_job(JobId::from_bytes(id));
                (finding.queue, finding.task) = (queue.clone(), task.clone());
                let Some(repair) = rule.repair else {
                    self.findings.push(finding);
                    continue;
                };
                let (now, lease_ms) = (self.now.as_millis(), self.lease_ms);
                self.found(finding, |connection| {
                    let sql = format!("UPDATE flexiq_jobs SET {repair} WHERE id = ?1");
                    execute(connection, &sql, [id.to_vec().into(), now.into(), lease_ms.into()])
                })?;
            }
        }
        Ok(())
    }
}
