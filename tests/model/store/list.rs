//! list: a page of jobs, in the order that the contract gives.

use std::cmp::Reverse;

use flexiq::JobId;
use flexiq::internals::{Filter, Listed, MOST_LISTED, MOST_LOOKED_AT, Page, Reached, Timestamp, state_code};

use super::manner::Manner;
use super::read::show;
use super::record::Record;
use super::world::World;

const READY: u8 = 1;
const SUCCEEDED: u8 = 3;
const EXPIRED: u8 = 6;

pub(super) fn list(world: &World, filter: &Filter) -> Page {
    let after = filter.after.as_ref();
    let mut queues = world
        .queues
        .iter()
        .filter(|queue| filter.queue.as_ref().is_none_or(|wanted| wanted == *queue))
        .filter(|queue| after.is_none_or(|after| **queue >= after.queue));
    let mut page = Page::default();
    let Some(queue) = queues.next() else { return page };
    let after = after.filter(|after| after.queue == *queue);
    let wanted = filter.state.map(state_code);
    let mut looked_at = 0;
    for state in (0..=EXPIRED).filter(|state| wanted.is_none_or(|wanted| wanted == *state)) {
        if after.is_some_and(|after| state < after.state) {
            continue;
        }
        let last = after.filter(|after| after.state == state).and_then(|after| after.last.as_ref());
        let of_state = |record: &&Record| record.queue == *queue && state_code(record.state) == state;
        let mut jobs: Vec<(&Record, Listed)> =
            world.jobs.values().filter(of_state).map(|record| (record, listed(record))).collect();
        let order = |one: &Listed, other: &Listed| {
            place(world.manner, state, one).cmp(&place(world.manner, state, other))
        };
        jobs.sort_by(|(_, one), (_, other)| order(one, other));
        for (record, listed) in jobs {
            if last.is_some_and(|last| order(&listed, last).is_le()) {
                continue;
            }
            looked_at += 1;
            if filter.task.as_ref().is_none_or(|task| record.task == *task) {
                page.jobs.push(show(record));
            }
            if page.jobs.len() == filter.limit.clamp(1, MOST_LISTED) || looked_at == MOST_LOOKED_AT {
                page.reached = Some(Reached { queue: queue.clone(), state, last: Some(listed) });
                return page;
            }
        }
    }
    page.reached = queues.next().map(|queue| Reached { queue: queue.clone(), state: 0, last: None });
    page
}

fn listed(record: &Record) -> Listed {
    let mut listed = Listed {
        task: String::new(),
        partition: String::new(),
        priority: 0,
        moment: record.due_at,
        id: record.id,
    };
    if state_code(record.state) == READY {
        listed.task = record.task.to_string();
        listed.partition = record.partition.clone();
        listed.priority = record.priority;
    } else if let Some(lease) = &record.lease {
        listed.moment = lease.until;
    } else if let Some(until) = record.kept_until {
        listed.moment = until;
    }
    listed
}

/// What comes first is the least.
type Place<'a> = (&'a str, usize, &'a str, Reverse<i8>, i64, JobId);

fn place(manner: Manner, state: u8, listed: &Listed) -> Place<'_> {
    let Listed { task, partition, priority, moment, id } = listed;
    // Those that have ended stand the other way round.
    let (moment, id) = match state {
        SUCCEEDED.. => (-moment.as_millis(), JobId::from_bytes(id.as_bytes().map(|byte| !byte))),
        _ => (Timestamp::as_millis(*moment), *id),
    };
    let length = if manner == Manner::Redis { partition.len() } else { 0 };
    (task, length, partition, Reverse(*priority), moment, id)
}
