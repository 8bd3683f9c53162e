//! doctor: whether all that the store holds goes together.

use serde_json::{Value, json};

use super::columns::plain;
use super::failure::Failure;
use super::report::Report;
use crate::queue::Queue;
use crate::store::{Finding, FindingKind};

pub(super) async fn doctor(queue: &Queue, fix: bool) -> Result<Report, Failure> {
    let checkup = if fix { queue.doctor().fix() } else { queue.doctor() };
    let findings = checkup.await?;
    let left = findings.iter().filter(|finding| !finding.is_repaired).count();
    let text = match findings.len() {
        0 => "everything goes together\n".to_owned(),
        _ => findings.iter().map(|finding| plain(&format!("{finding}\n"))).collect(),
    };
    let json = json!({ "findings": findings.iter().map(told).collect::<Vec<_>>() });
    let failures = match left {
        0 => Vec::new(),
        _ if fix => vec![format!("not repaired: {left} of {}", findings.len())],
        _ => vec!["not everything goes together; --fix repairs what can be repaired".into()],
    };
    Ok(Report::new(text, json).with_failures(failures))
}

/// A finding for programs.
fn told(finding: &Finding) -> Value {
    json!({
        "kind": kind(finding.kind),
        "queue": finding.queue,
        "task": finding.task,
        "job": finding.job.map(|job| job.to_string()),
        "found": finding.found,
        "expected": finding.expected,
        "is_repaired": finding.is_repaired,
        "sentences": finding.to_string(),
    })
}

fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Count => "count",
        FindingKind::NoLease => "no_lease",
        FindingKind::Place => "place",
        FindingKind::Orphan => "orphan",
        FindingKind::Contradiction => "contradiction",
        FindingKind::Lost => "lost",
        FindingKind::Turn => "turn",
        FindingKind::NamedLimit => "named_limit",
        FindingKind::Bell => "bell",
        FindingKind::Limits => "limits",
        FindingKind::Foreign => "foreign",
        FindingKind::File => "file",
    }
}
