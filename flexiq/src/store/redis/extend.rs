//! extend: a worker's sign of life, to the whole store and then to each of its queues.

use super::codes::millis;
use super::wire::{Packed, Parts, Unpacked};
use super::{Shared, scripts};
use crate::error::Result;
use crate::name::Name;
use crate::store::types::{Beat, BeatAnswer, Lapse, WorkerId};

pub(super) async fn extend(store: &Shared, beat: Beat) -> Result<BeatAnswer> {
    let number = |duration| millis(duration).to_string().into_bytes();
    let (lease, every) = (number(beat.lease), number(beat.every));
    let worker = beat.worker.as_bytes().to_vec();
    let answer =
        store.run_fleet(&scripts::FLEET_BEAT, vec![worker.clone(), lease.clone(), every.clone()]).await?;
    let mut parts = Parts::of(answer, store.place());
    let is_unknown = parts.number()? == 0;
    let (silent_at, version) = (parts.bytes()?, parts.number()?);
    let mut queues = Vec::new();
    for _ in 0..parts.number()? {
        queues.push(Name::new("queue", parts.text()?)?);
    }
    let mut gone = Vec::new();
    while !parts.is_empty() {
        gone.extend(Unpacked(&parts.bytes()?).id().map(WorkerId::from_bytes));
    }

    let mut args = vec![worker, lease, every, silent_at, version.to_string().into_bytes()];
    args.extend(beat.leases.iter().map(|(lease, lapse)| {
        let lapse = u8::from(*lapse == Lapse::Release);
        Packed::default().bytes(lease.job.as_bytes()).word(lease.run).byte(lapse).0
    }));
    let mut told = vec![b'l'; beat.leases.len()];
    let mut is_older = false;
    for queue in queues {
        let answer = store.run(&scripts::EXTEND, &queue, args.clone()).await?;
        let mut parts = Parts::of(answer, store.place());
        is_older |= parts.number()? > 0;
        // A lease lies in one queue: the others do not know it.
        for (told, here) in told.iter_mut().zip(parts.bytes()?) {
            if here != b'l' {
                *told = here;
            }
        }
        for worker in &gone {
            store.run(&scripts::FORGET, &queue, vec![worker.as_bytes().to_vec()]).await?;
        }
    }
    if is_older {
        store.publish().await?;
    }
    let those = |wanted: u8| {
        let leases = beat.leases.iter().zip(&told).filter(move |(_, told)| **told == wanted);
        leases.map(|((lease, _), _)| *lease).collect()
    };
    Ok(BeatAnswer { lost: those(b'l'), cancelled: those(b'c'), is_unknown })
}
