//! The copies of the limits that queues have, against what holds in the whole store.
//!
//! A copy that is older is on its way, and each beat looks for one that did not come. One that is newer, or of the same version
//! and other limits, nothing would ever set right: a server that has lost writes may leave it.

use std::collections::BTreeMap;

use super::check::Round;
use super::fleet::{gate, gate_name, read_standings};
use super::wire::Parts;
use super::{Shared, scripts};
use crate::error::Result;
use crate::name::Name;
use crate::store::finding::{Finding, FindingKind};
use crate::store::types::{Scope, Standing};

/// What holds nothing back, as a gate is written.
const OPEN: &str = "0||";

/// What a queue has of the limits: by the names of gates as its keys have them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Copy {
    gates: BTreeMap<Vec<u8>, String>,
    max_pending: String,
}

pub(super) async fn look_at_copy(round: &mut Round<'_>, queue: &Name) -> Result<()> {
    // The copy first: what holds changes with a new version alone, so that both of one version are of one moment.
    let (version, copy) = read_copy(round.store, queue).await?;
    let answer = round.store.run_fleet(&scripts::FLEET_LIMITS, vec![]).await?;
    let mut parts = Parts::of(answer, round.store.place());
    let newest = parts.number()?;
    let rows = Parts::of(parts.value(), round.store.place());
    if version < newest
        || version == newest && copy == copy_of(&read_standings(rows, round.store.place())?, queue)
    {
        return Ok(());
    }
    let found = match version > newest {
        true => format!("its copy of the limits is of version {version}"),
        false => "its copy of the limits is another than what holds".to_owned(),
    };
    let finding = Finding::new(FindingKind::Limits, found, format!("what holds is of version {newest}"));
    if round.repair.is_wanted() {
        let version = vec![version.to_string().into_bytes()];
        round.store.run_fleet(&scripts::FLEET_VERSION, version).await?;
        round.store.publish().await?;
    }
    round.findings.push(finding.in_queue(queue.as_str()).repaired(round.repair.is_wanted()));
    Ok(())
}

/// The copy that a queue has, without what runs have said.
async fn read_copy(store: &Shared, queue: &Name) -> Result<(i64, Copy)> {
    let mut parts = Parts::of(store.run(&scripts::COPY, queue, vec![]).await?, store.place());
    let (version, max_pending) = (parts.number()?, parts.text()?);
    let mut copy = Copy { max_pending, ..Copy::default() };
    let mut parts = Parts::of(parts.value(), store.place());
    while !parts.is_empty() {
        let (name, gate) = (parts.bytes()?, parts.text()?);
        let gate = match gate.split_once('@') {
            Some((paused, rest)) => {
                let rest = rest.find('|').map_or("", |at| &rest[at..]);
                // Nothing but a hold is no copy of a limit.
                Some(format!("{paused}{rest}")).filter(|gate| gate != OPEN)
            }
            None => Some(gate),
        };
        copy.gates.extend(gate.map(|gate| (name, gate)));
    }
    Ok((version, copy))
}

/// The copy that a queue should have, as `know.lua` writes it.
fn copy_of(standings: &[Standing], queue: &Name) -> Copy {
    let mut copy = Copy::default();
    for standing in standings {
        let Some(name) = gate_name(&standing.scope, queue) else { continue };
        let gate = gate(standing);
        let (gate, max_pending) = gate.rsplit_once('|').unwrap_or((&gate, ""));
        let is_of_one = matches!(standing.scope, Scope::Partition(..));
        if !max_pending.is_empty() && name.is_empty() {
            copy.max_pending = max_pending.to_owned();
        }
        if !max_pending.is_empty() && is_of_one {
            copy.gates.insert([&name[..], b"\0"].concat(), max_pending.to_owned());
        }
        // That nothing holds one partition back stands above what holds for each.
        if gate != OPEN || is_of_one {
            copy.gates.insert(name, gate.to_owned());
        }
    }
    copy
}
