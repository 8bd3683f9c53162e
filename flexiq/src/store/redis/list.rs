//! list: a page of jobs. Each queue has a step of its own, which goes through its states.

use super::codes::{rank, state_code, write_lane};
use super::read::{HEAD, read_jobs};
use super::wire::{FAR, Packed, Parts, Unpacked, unreadable};
use super::{Shared, scripts};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::job::{Job, JobId};
use crate::name::Name;
use crate::store::codes::state;
use crate::store::list::{Filter, Listed, MOST_LOOKED_AT, Page, Reached};

pub(super) async fn list(store: &Shared, filter: Filter) -> Result<Page> {
    let mut queues = store.queues().await?;
    queues.retain(|queue| {
        filter.queue.as_ref().is_none_or(|wanted| wanted == queue)
            && filter.after.as_ref().is_none_or(|reached| reached.queue <= *queue)
    });
    let mut queues = queues.into_iter();
    let Some(queue) = queues.next() else { return Ok(Page::default()) };
    let mut page = page(store, &filter, queue).await?;
    if page.reached.is_none() {
        page.reached = queues.next().map(|queue| Reached { queue, state: state::SCHEDULED, last: None });
    }
    Ok(page)
}

/// A page of one queue.
async fn page(store: &Shared, filter: &Filter, queue: Name) -> Result<Page> {
    let (mut first, last) = match filter.state.map(state_code) {
        Some(state) => (state, state),
        None => (state::SCHEDULED, state::EXPIRED),
    };
    let (mut moment, mut place) = (Vec::new(), Vec::new());
    if let Some(reached) = filter.after.as_ref().filter(|reached| reached.queue == queue) {
        if let Some(listed) = reached.last.as_ref().filter(|_| (first..=last).contains(&reached.state)) {
            moment = number(listed.moment.as_millis());
            place = place_of(reached.state, listed);
        }
        first = first.max(reached.state);
    }
    let args = vec![
        number(first),
        number(last),
        filter.task.as_ref().map(|task| task.as_bytes().to_vec()).unwrap_or_default(),
        number(filter.most()),
        number(MOST_LOOKED_AT),
        HEAD.into(),
        moment,
        place,
    ];
    let mut parts = Parts::of(store.run(&scripts::LIST, &queue, args).await?, store.place());
    let (state, moment, id) = (parts.bytes()?, parts.bytes()?, parts.bytes()?);
    let jobs = read_jobs(store, &queue, parts)?;
    let reached = match state.is_empty() {
        true => None,
        false => {
            let reached = read_reached(queue, &state, &moment, &id, jobs.last());
            Some(reached.ok_or_else(|| unreadable(store.place(), "a place of another form"))?)
        }
    };
    Ok(Page { jobs, reached })
}

/// Where a page ended. Of ready jobs, every one that is looked at is wanted.
fn read_reached(queue: Name, state: &[u8], moment: &[u8], id: &[u8], last: Option<&Job>) -> Option<Reached> {
    let state = str::from_utf8(state).ok()?.parse().ok()?;
    let last = if state == state::READY {
        let job = last?;
        Listed {
            task: job.task.clone(),
            partition: job.partition.clone().unwrap_or_default(),
            priority: job.priority,
            moment: job.due_at.into(),
            id: job.id,
        }
    } else {
        let moment = str::from_utf8(moment).ok()?.parse().ok()?;
        Listed::at(Timestamp::from_millis(moment), JobId::from_bytes(Unpacked(id).id()?))
    };
    Some(Reached { queue, state, last: Some(last) })
}

/// A job's id, or the place of a ready one as `lua/lib/jobs.lua` writes it.
fn place_of(state: u8, listed: &Listed) -> Vec<u8> {
    let id = listed.id.as_bytes();
    if state != state::READY {
        return id.to_vec();
    }
    let lane = match listed.partition.as_str() {
        "" => listed.task.clone().into_bytes(),
        partition => write_lane(&listed.task, partition),
    };
    let order = u64::from(rank(listed.priority)) << 44 | listed.moment.as_millis().clamp(0, FAR) as u64;
    Packed(lane).byte(0).bytes(&order.to_be_bytes()[1..]).bytes(id).0
}

fn number(number: impl ToString) -> Vec<u8> {
    number.to_string().into_bytes()
}
