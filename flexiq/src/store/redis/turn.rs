//! turn: a worker's finishes and its next claim, in one step that may be sent again.

use std::sync::Arc;

use super::codes::{dead_code, millis, read_body, scheduled_code, write_error, write_value};
use super::enqueue::when;
use super::schedules::read_due;
use super::wire::{Packed, Parts, Unpacked, unreadable};
use super::{Shared, scripts};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::job::{Held, Hold, JobId, Transition, Value};
use crate::name::Name;
use crate::store::story::{kind_code, write_notes};
use crate::store::types::{Claim, Claimed, Finish, Finished, LeaseId, Turn, TurnAnswer};

pub(super) async fn turn(store: &Shared, turn: Arc<Turn>) -> Result<TurnAnswer> {
    let order = Order::of(&turn.finishes);
    let mut are_settled = false;
    loop {
        let answer = store.run(&scripts::TURN, &turn.queue, arguments(&turn, &order, are_settled)).await?;
        let mut parts = Parts::of(answer, store.place());
        if parts.text()? == "settle" {
            // A worker has fallen silent: what it declared must not hold any more.
            store.publish().await?;
            are_settled = true;
            continue;
        }
        let answer = read_answer(&turn.queue, parts, store.place())?;
        store.leased.follow(&turn, &answer);
        return Ok(answer);
    }
}

/// A turn's finishes as they are sent, in their order: those at its beginning that are alike in groups.
struct Order {
    /// Successes without a value: the number of their run, how long they are kept, and how many there are.
    groups: Vec<(u32, i64, usize)>,
    /// How many finishes stand in groups.
    grouped: usize,
}

impl Order {
    fn of(finishes: &[Finish]) -> Self {
        let mut groups: Vec<(u32, i64, usize)> = Vec::new();
        for finish in finishes {
            let (Transition::Succeed { value: Value::Unit, keep }, None, None) =
                (&finish.transition, finish.hold, &finish.notes)
            else {
                break;
            };
            let (run, keep) = (finish.lease.run, millis(*keep));
            match groups.last_mut() {
                Some((of_run, kept, jobs)) if (*of_run, *kept) == (run, keep) => *jobs += 1,
                _ => groups.push((run, keep, 1)),
            }
        }
        Self { grouped: groups.iter().map(|(.., jobs)| jobs).sum(), groups }
    }
}

fn arguments(turn: &Turn, order: &Order, are_settled: bool) -> Vec<Vec<u8>> {
    let number = |number: u64| number.to_string().into_bytes();
    let (finishes, groups) = (turn.finishes.len(), order.groups.len());
    let (alike, others) = turn.finishes.split_at(order.grouped);
    // Counted as the script counts, from 1, behind the three that every script has.
    let claim_at = 11 + groups + alike.len() + 2 * others.len();
    let mut args = vec![
        turn.worker.as_bytes().to_vec(),
        number(turn.number),
        number(are_settled.into()),
        number(finishes as u64),
        number(claim_at as u64),
        number(groups as u64),
        number(others.len() as u64),
    ];
    let mut ids = alike.iter().map(|finish| finish.lease.job.as_bytes().to_vec());
    for &(run, keep, jobs) in &order.groups {
        args.push(Packed::default().word(run).moment(keep).word(jobs as u32).0);
        args.extend(ids.by_ref().take(jobs));
    }
    for Finish { lease, transition, hold, setback, notes } in others {
        let (head, body) = finish(lease, transition);
        let mut head = with_hold(head, *hold);
        head.push(kind_code(*setback));
        head.extend(notes.iter().flat_map(|notes| write_notes(lease.run, notes)));
        args.push(head);
        args.push(body);
    }
    if let Some(Claim { slots, tasks, lease }) = &turn.claim {
        args.push(number(millis(*lease).unsigned_abs()));
        args.push(number(slots.len() as u64));
        args.extend(slots.iter().map(|&free| number(free.into())));
        for room in tasks {
            args.push(room.task.as_bytes().to_vec());
            args.push(Packed::default().byte(room.slot as u8).word(room.at_most).word(room.max_losses).0);
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
        Transition::PutBack => (no_time(head, 5, 0), Vec::new()),
        Transition::Cancel => (no_time(head, 4, 0), Vec::new()),
    }
}

/// What a run found that nothing should start for a while, behind what becomes of its job.
fn with_hold(head: Vec<u8>, hold: Option<Hold>) -> Vec<u8> {
    let what = match hold.map(|hold| hold.what) {
        None => 0,
        Some(Held::Queue) => 1,
        Some(Held::Task) => 2,
        Some(Held::Partition) => 3,
    };
    let length = hold.map(|hold| millis(hold.length)).unwrap_or_default();
    Packed(head).byte(what).moment(length).0
}

fn read_answer(queue: &Name, mut parts: Parts<'_>, place: &str) -> Result<TurnAnswer> {
    let (told, more, counters) = (parts.bytes()?, parts.number()? > 0, parts.bytes()?);
    let finished = told.iter().map(|&end| if end == b'd' { Finished::Done } else { Finished::LeaseLost });
    let ticks = read_due(queue, parts.value(), place)?;
    let mut answer = TurnAnswer { finished: finished.collect(), more, ticks, ..Default::default() };
    let mut counters = Unpacked(&counters);
    let (mut same, mut of_run) = (0, Counters::default());
    while !parts.is_empty() {
        let (id, body) = (parts.bytes()?, parts.bytes()?);
        let unknown = || unreadable(place, "a job of another form");
        if same == 0 {
            (same, of_run) = read_counters(&mut counters).ok_or_else(unknown)?;
        }
        same -= 1;
        answer.claimed.push(claimed(&id, &of_run, &body).ok_or_else(unknown)?);
    }
    Ok(answer)
}

/// What a claim tells of a run beside its job.
#[derive(Default)]
struct Counters {
    run: u32,
    failures: u32,
    deferrals: u32,
    losses: u32,
    ready_at: Timestamp,
    claimed_at: Timestamp,
    is_capped: bool,
}

/// The counters of so many jobs that follow each other.
fn read_counters(text: &mut Unpacked<'_>) -> Option<(u64, Counters)> {
    let jobs = text.number(2)?;
    let counters = Counters {
        run: text.word()?,
        failures: text.word()?,
        deferrals: text.word()?,
        losses: text.word()?,
        ready_at: text.moment()?,
        claimed_at: text.moment()?,
        is_capped: text.byte()? > 0,
    };
    Some((jobs, counters))
}

fn claimed(id: &[u8], counters: &Counters, body: &[u8]) -> Option<Claimed> {
    let body = read_body(body)?;
    Some(Claimed {
        lease: LeaseId { job: JobId::from_bytes(Unpacked(id).id()?), run: counters.run },
        task: body.task,
        partition: body.partition,
        payload: body.payload,
        outset: body.outset,
        failures: counters.failures,
        deferrals: counters.deferrals,
        losses: counters.losses,
        ready_at: counters.ready_at,
        claimed_at: counters.claimed_at,
        is_capped: counters.is_capped,
    })
}
