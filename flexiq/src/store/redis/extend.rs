//! extend: a worker's sign of life, to the whole store and then to each of its queues.

use std::collections::HashSet;
use std::time::Duration;

use super::codes::millis;
use super::permits::{look_after, renew};
use super::schedules::read_due;
use super::wire::{Packed, Parts, Unpacked};
use super::{Shared, scripts};
use crate::error::Result;
use crate::name::Name;
use crate::store::types::{Beat, BeatAnswer, Lapse, LeaseId, WorkerId};

/// A beat whose answer takes longer than the time to the next is sent again, over another connection: one that has died
/// must not cost the leases. But a server may be as slow as this.
const LEAST_TIME: Duration = Duration::from_secs(1);

pub(super) async fn extend(store: &Shared, beat: Beat) -> Result<BeatAnswer> {
    let number = |duration| millis(duration).to_string().into_bytes();
    let (lease, every) = (number(beat.lease), number(beat.every));
    let worker = beat.worker.as_bytes().to_vec();
    let within = beat.every.max(LEAST_TIME).min(store.timeout());
    let report = beat.kept_report().unwrap_or_default().as_bytes().to_vec();
    let args = vec![worker.clone(), lease.clone(), every.clone(), report];
    let answer = store.run_fleet_within(within, &scripts::FLEET_BEAT, args).await?;
    let mut parts = Parts::of(answer, store.place());
    let is_unknown = parts.number()? == 0;
    let (silent_at, version) = (parts.bytes()?, parts.number()?);
    let (queues, limits) = (parts.number()?, parts.number()?);
    let queues = names("queue", queues, &mut parts)?;
    let mut limits = names("limit", limits, &mut parts)?;
    let mut gone = Vec::new();
    while !parts.is_empty() {
        gone.extend(Unpacked(&parts.bytes()?).id().map(WorkerId::from_bytes));
    }

    limits.extend(beat.permits.iter().map(|permit| permit.limit.clone()));
    limits.sort();
    limits.dedup();
    let mut seen = Vec::new();
    for limit in limits {
        let permits: Vec<_> = beat.permits.iter().filter(|permit| permit.limit == limit).collect();
        seen.push(renew(store, within, limit, &permits, [lease.clone(), every.clone()]).await?);
    }

    let head = [worker, lease, every, silent_at, version.to_string().into_bytes()];
    let mut told = vec![b'l'; beat.leases.len()];
    let (mut is_older, mut ticks) = (false, Vec::new());
    for queue in queues {
        let (mut args, mut asked) = (head.to_vec(), Vec::new());
        for (index, (lease, lapse)) in beat.leases.iter().enumerate() {
            if store.leased.may_lie_in(lease, &queue) {
                args.push(write_lease(lease, *lapse));
                asked.push(index);
            }
        }
        let answer = store.run_within(within, &scripts::EXTEND, &queue, args).await?;
        let mut parts = Parts::of(answer, store.place());
        is_older |= parts.number()? > 0;
        for (index, here) in asked.into_iter().zip(parts.bytes()?) {
            if here != b'l' {
                told[index] = here;
            }
        }
        ticks.extend(read_due(&queue, parts.value(), store.place())?);
        for worker in &gone {
            store.run(&scripts::FORGET, &queue, vec![worker.as_bytes().to_vec()]).await?;
        }
    }
    if is_older {
        store.publish().await?;
    }
    // Behind the leases, which must not wait for it.
    let mut lapsed = HashSet::new();
    for limit in seen {
        lapsed.extend(limit.lapsed.iter().cloned());
        look_after(store, within, limit).await?;
    }
    // In the order in which they were named.
    let lapsed = beat.permits.iter().filter(|permit| lapsed.contains(permit)).cloned().collect();
    let those = |wanted: u8| {
        let leases = beat.leases.iter().zip(&told).filter(move |(_, told)| **told == wanted);
        leases.map(|((lease, _), _)| *lease).collect::<Vec<_>>()
    };
    let lost = those(b'l');
    ticks.sort_by(|one, other| (&one.queue, &one.name).cmp(&(&other.queue, &other.name)));
    store.leased.forget(&lost);
    Ok(BeatAnswer { lost, cancelled: those(b'c'), lapsed, is_unknown, ticks })
}

fn names(what: &'static str, count: i64, parts: &mut Parts<'_>) -> Result<Vec<Name>> {
    (0..count).map(|_| Name::new(what, parts.text()?)).collect()
}

fn write_lease(lease: &LeaseId, lapse: Lapse) -> Vec<u8> {
    Packed::default().bytes(lease.job.as_bytes()).word(lease.run).byte((lapse == Lapse::Release).into()).0
}
