//! turn: a worker's finishes and its next claim, in one step that may be sent again.

use std::sync::Arc;

use super::codes::{dead_code, millis, read_body, scheduled_code, write_error, write_value};
use super::enqueue::when;
use super::wire::{Packed, Parts, Unpacked, unreadable};
use super::{Shared, scripts};
use crate::error::Result;
use crate::job::{JobId, Transition};
use crate::store::types::{Claim, Claimed, Finish, Finished, LeaseId, Turn, TurnAnswer};

pub(super) async fn turn(store: &Shared, turn: Arc<Turn>) -> Result<TurnAnswer> {
    let mut args = arguments(&turn);
    loop {
        let answer = store.run(&scripts::TURN, &turn.queue, args.clone()).await?;
        let mut parts = Parts::of(answer, store.place());
        if parts.text()? == "settle" {
            // A worker has fallen silent: what it declared must not hold any more.
            store.publish().await?;
            args[2] = b"1".to_vec();
            continue;
        }
        let answer = read_answer(parts, store.place())?;
        store.leased.follow(&turn, &answer);
        return Ok(answer);
    }
}

fn arguments(turn: &Turn) -> Vec<Vec<u8>> {
    let mut args = vec![
        turn.worker.as_bytes().to_vec(),
        turn.number.to_string().into_bytes(),
        b"0".to_vec(),
        turn.finishes.len().to_string().into_bytes(),
    ];
    for Finish { lease, transition } in &turn.finishes {
        let (head, body) = finish(lease, transition);
        args.push(head);
        args.push(body);
    }
    if let Some(Claim { slots, tasks, lease }) = &turn.claim {
        let number = |number: u64| number.to_string().into_bytes();
        args.push(number(millis(*lease).unsigned_abs()));
        args.push(number(slots.len() as u64));
        args.extend(slots.iter().map(|&free| number(free.into())));
        for room in tasks {
            args.push(room.task.as_bytes().to_vec());
            args.push(number(room.slot as u64));
            args.push(number(room.at_most.into()));
            args.push(number(room.max_losses.into()));
        }
    }
    args
}

/// A lease with what becomes of its job, and the value or error that goes with it.
fn finish(lease: &LeaseId, transition: &Transition) -> (Vec<u8>, Vec<u8>) {
    let head = Packed::default().bytes(lease.job.as_bytes()).word(lease.run);
    let no_time = |head: Packed, kind, reason| head.byte(kind).byte(reason).byte(0).moment(0).moment(0).0;
    match transition {
        Transition::Succeed { value, keep } => {
            (head.byte(0).byte(0).byte(0).moment(0).moment(millis(*keep)).0, write_value(value))
        }
        Transition::Schedule { reason, due, error } => {
            let (is_moment, due) = when(*due);
            let head = head.byte(1).byte(scheduled_code(*reason)).byte(is_moment.into());
            (head.moment(due).moment(0).0, write_error(error.as_deref()))
        }
        Transition::Kill { reason, error } => {
            (no_time(head, 2, dead_code(*reason)), write_error(error.as_deref()))
        }
        Transition::Release => (no_time(head, 3, 0), Vec::new()),
        Transition::Cancel => (no_time(head, 4, 0), Vec::new()),
    }
}

fn read_answer(mut parts: Parts<'_>, place: &str) -> Result<TurnAnswer> {
    let finished = parts.bytes()?;
    let finished = finished.iter().map(|&end| if end == b'd' { Finished::Done } else { Finished::LeaseLost });
    let mut answer = TurnAnswer { finished: finished.collect(), ..Default::default() };
    answer.more = parts.number()? > 0;
    while !parts.is_empty() {
        let (head, body) = (parts.bytes()?, parts.bytes()?);
        answer.claimed.push(claimed(&head, &body).ok_or_else(|| unreadable(place, "a job of another form"))?);
    }
    Ok(answer)
}

fn claimed(head: &[u8], body: &[u8]) -> Option<Claimed> {
    let mut head = Unpacked(head);
    let body = read_body(body)?;
    Some(Claimed {
        lease: LeaseId { job: JobId::from_bytes(head.id()?), run: head.word()? },
        task: body.task,
        partition: body.partition,
        payload: body.payload,
        outset: body.outset,
        failures: head.word()?,
        deferrals: head.word()?,
        losses: head.word()?,
        ready_at: head.moment()?,
        claimed_at: head.moment()?,
        is_capped: head.byte()? > 0,
    })
}
