//! check: whether what is stored goes together, part by part, while others go on. Each part is a step of the server that
//! takes so much, so that what it finds is so at one moment, and nobody waits for long.

use redis::Value;

use super::keys::Side;
use super::permits;
use super::scripts::Script;
use super::wire::{Parts, Unpacked};
use super::{Shared, copies, keys, scripts};
use crate::error::Result;
use crate::job::JobId;
use crate::name::Name;
use crate::store::finding::{Finding, FindingKind, MOST_FINDINGS, Repair};

/// The parts of a queue in the order in which each can be repaired: first jobs, which are put where they belong; then what
/// stands anywhere without belonging there; then what counts them, and what goes by the counts.
const PARTS: [&str; 21] = [
    "jobs",
    "lanes",
    "scheduled",
    "leases",
    "succeeded",
    "dead",
    "cancelled",
    "expired",
    "expiries",
    "delayed",
    "called",
    "awaited",
    "runs",
    "values",
    "stories",
    "counts",
    "partitions",
    "turn_order",
    "producers",
    "producer_line",
    "bells",
];

/// Up to so many members of an order are counted one by one in one step, about 10 ms.
const MOST_COUNTED: &str = "10000";
/// A step of a scan reads about so many bytes,
const BYTES_AT_ONCE: i64 = 256 * 1024;
/// and at most about so many members.
const MOST_AT_ONCE: i64 = 100;
/// The first step of a scan does not know yet how large bodies are.
const FIRST_AT_ONCE: i64 = 50;

pub(super) async fn check(store: &Shared, repair: Repair) -> Result<Vec<Finding>> {
    let mut round = Round { store, repair, findings: Vec::new() };
    if round.look_at_fleet().await? {
        for queue in store.queues().await? {
            round.look_at_queue(&queue).await?;
        }
        for limit in names_in_use(store).await? {
            round.look_at_limit(&limit).await?;
        }
    }
    round.findings.truncate(MOST_FINDINGS);
    Ok(round.findings)
}

/// The named limits in use.
async fn names_in_use(store: &Shared) -> Result<Vec<Name>> {
    let key = keys::one_of_fleet(store.prefix(), "named");
    let answer = store.call(redis::cmd("ZRANGE").arg(key).arg(0).arg(-1)).await?;
    let mut parts = Parts::of(answer, store.place());
    let mut names = Vec::new();
    while !parts.is_empty() {
        names.push(Name::new("limit", parts.text()?)?);
    }
    Ok(names)
}

/// One look at everything, with what it has found so far.
pub(super) struct Round<'a> {
    pub(super) store: &'a Shared,
    pub(super) repair: Repair,
    pub(super) findings: Vec<Finding>,
}

impl Round<'_> {
    /// Looks at the keys of the whole store; false if they cannot be worked with.
    async fn look_at_fleet(&mut self) -> Result<bool> {
        let types = self.store.run_fleet(&scripts::KEYS_OF_FLEET, vec![]).await?;
        self.look_at_types(Side::Fleet, None, types)
    }

    async fn look_at_queue(&mut self, queue: &Name) -> Result<()> {
        let types = self.store.run(&scripts::KEYS_OF_QUEUE, queue, vec![]).await?;
        if !self.look_at_types(Side::Queue, Some(queue), types)? {
            return Ok(());
        }
        copies::look_at_copy(self, queue).await?;
        for part in PARTS {
            self.look_at_part(queue, part).await?;
        }
        Ok(())
    }

    /// Finds keys that are of another type; false if there are any, for a script would only fail.
    fn look_at_types(&mut self, side: Side, queue: Option<&Name>, types: Value) -> Result<bool> {
        let (mut types, mut are_right) = (Parts::of(types, self.store.place()), true);
        for (key, expected) in side.types() {
            let found = types.text()?;
            if found != *expected && found != "none" {
                let mut finding = Finding::new(
                    FindingKind::Foreign,
                    format!("the key {key} is a {found}"),
                    format!("it is a {expected}"),
                );
                finding.queue = queue.map(Name::to_string);
                self.findings.push(finding);
                are_right = false;
            }
        }
        Ok(are_right)
    }

    /// Looks at a part of a queue, in steps.
    async fn look_at_part(&mut self, queue: &Name, part: &str) -> Result<()> {
        let (mut cursor, mut at_once) = ("0".to_owned(), FIRST_AT_ONCE);
        while self.findings.len() < MOST_FINDINGS {
            let args = [part, self.flag(), &cursor, &at_once.to_string(), MOST_COUNTED];
            let args = args.map(|arg| arg.as_bytes().to_vec()).to_vec();
            let answer = self.store.run(&scripts::CHECK, queue, args).await?;
            let mut parts = Parts::of(answer, self.store.place());
            cursor = parts.text()?;
            let (seen, bytes) = (parts.number()?, parts.number()?);
            self.read(parts, Some(queue))?;
            if cursor == "0" {
                break;
            }
            at_once = (BYTES_AT_ONCE / (bytes / seen.max(1)).max(1)).clamp(1, MOST_AT_ONCE);
        }
        Ok(())
    }

    async fn look_at_limit(&mut self, limit: &Name) -> Result<()> {
        let types = self.run_limit(&scripts::KEYS_OF_LIMIT, limit, vec![]).await?;
        if self.look_at_types(Side::Limit, None, types)? {
            let args = vec![self.flag().into(), MOST_COUNTED.into()];
            let answer = self.run_limit(&scripts::CHECK_LIMIT, limit, args).await?;
            self.read(Parts::of(answer, self.store.place()), None)?;
        }
        Ok(())
    }

    async fn run_limit(&self, script: &Script, limit: &Name, args: Vec<Vec<u8>>) -> Result<Value> {
        permits::run(self.store, self.store.timeout(), script, limit, args).await
    }

    /// What a script is told of whether it repairs.
    fn flag(&self) -> &'static str {
        if self.repair.is_wanted() { "1" } else { "0" }
    }

    /// Reads what a script has found.
    fn read(&mut self, mut parts: Parts<'_>, queue: Option<&Name>) -> Result<()> {
        while !parts.is_empty() {
            let kind = kind_of(&parts.text()?);
            let (task, id) = (parts.bytes()?, parts.bytes()?);
            let mut finding = Finding::new(kind, parts.text()?, parts.text()?);
            finding.queue = queue.map(Name::to_string);
            finding.task = (!task.is_empty()).then(|| String::from_utf8_lossy(&task).into_owned());
            finding.job = Unpacked(&id).id().map(JobId::from_bytes);
            self.findings.push(finding.repaired(parts.number()? == 1));
        }
        Ok(())
    }
}

fn kind_of(word: &str) -> FindingKind {
    match word {
        "count" => FindingKind::Count,
        "no_lease" => FindingKind::NoLease,
        "place" => FindingKind::Place,
        "orphan" => FindingKind::Orphan,
        "contradiction" => FindingKind::Contradiction,
        "turn" => FindingKind::Turn,
        "named_limit" => FindingKind::NamedLimit,
        "bell" => FindingKind::Bell,
        _ => FindingKind::Foreign,
    }
}
