//! Everything that can be seen of a store is the same on every side.
//!
//! All are compared exactly, for all see the same verbs at the same moments. Where the contract leaves a store free, the
//! model does as the stores do, and says so where it does:
//! - what time alone does to a job is done by a claim of its queue and by a beat, not before (`store/house.rs`);
//! - a turn that did nothing may be done again under its number (`store/turn.rs`);
//! - only who finds a lease or a worker to be overdue asks the guard (`store/house.rs`, `store/workers.rs`);
//! - where SQLite and Redis differ, it has the manner of the one that it is compared with (`store/manner.rs`).
//!
//! Five things are evened out instead: how many stand before a job in line is each store's own estimate, and so is the time
//! behind the calls (`permits.rs`); a task of which a queue holds no job any more may be counted as nothing or not at
//! all (`without_empty`); what time alone has opened of a partition is told when a claim or a beat has looked at it
//! (`without_time_of_partitions`); the words of a refusal are each store's own (`Refusal`); and no duration of a history is finer
//! than a millisecond, nor is a success kept for no time at all.

use std::collections::BTreeMap;

use flexiq::internals::{Counts, Filter, JobKey, Name, Repair, Snapshot};
use flexiq::{Job, JobId, State};
use proptest::test_runner::TestCaseError;

use crate::limits::name;
use crate::sides::Sides;

/// A list is read in pages of this many.
const PAGE: usize = 100;

/// Compares all that is seen; answers the jobs there are.
pub(crate) async fn compare(
    sides: &Sides,
    before: &BTreeMap<JobId, Job>,
) -> Result<BTreeMap<JobId, Job>, TestCaseError> {
    let all = Filter { limit: PAGE, ..Filter::default() };
    let mut jobs = BTreeMap::new();
    compare_list(sides, all, |job| drop(jobs.insert(job.id, job))).await?;
    drop(sides.ask_alike("counts", |store| store.counts(), without_empty).await?);
    drop(sides.ask_alike("stats", |store| store.stats(), without_time_of_partitions).await?);
    drop(sides.ask("limits", |store| store.limits()).await?);
    drop(sides.ask("declarations", |store| store.declarations()).await?);
    drop(sides.ask("schedules", |store| store.schedules()).await?);
    drop(sides.ask("queues", |store| store.queues()).await?);
    // Each would be a step of its own: the oldest and the youngest of those that wait are explained.
    let mut waiting = jobs.values().filter(|job| job.state.is_pending()).map(|job| job.id);
    for id in [waiting.next(), waiting.next_back()].into_iter().flatten() {
        drop(sides.ask("explain", |store| store.explain(id)).await?);
        drop(sides.ask("story", |store| store.story(id)).await?);
    }
    // An end is for ever, but for a retry: it is enough to look at it once here, and once more at the very end.
    let state = |id: &JobId| before.get(id).map(|job| (job.state, job.runs));
    let ended = jobs.values().filter(|job| job.state.is_ended());
    for job in ended.filter(|job| state(&job.id) != Some((job.state, job.runs))) {
        compare_end(sides, job).await?;
    }
    Ok(jobs)
}

/// Compares how every job has ended.
pub(crate) async fn compare_ends(sides: &Sides, jobs: &BTreeMap<JobId, Job>) -> Result<(), TestCaseError> {
    for job in jobs.values().filter(|job| job.state.is_ended()) {
        compare_end(sides, job).await?;
    }
    Ok(())
}

/// Compares what a check finds: the model has nothing to find.
pub(crate) async fn compare_soundness(sides: &Sides) -> Result<(), TestCaseError> {
    sides.ask("check", |store| store.check(Repair::Nothing)).await.map(drop)
}

async fn compare_end(sides: &Sides, job: &Job) -> Result<(), TestCaseError> {
    let key = JobKey { queue: name(&job.queue), id: job.id };
    drop(sides.ask("story", |store| store.story(job.id)).await?);
    sides.ask("ended", |store| store.ended(key.clone())).await.map(drop)
}

/// Compares a list page by page.
async fn compare_list(
    sides: &Sides,
    mut filter: Filter,
    mut found: impl FnMut(Job),
) -> Result<(), TestCaseError> {
    loop {
        let page = sides.ask("list", |store| store.list(filter.clone())).await?.unwrap_or_default();
        page.jobs.into_iter().for_each(&mut found);
        filter.after = page.reached;
        if filter.after.is_none() {
            return Ok(());
        }
    }
}

/// Takes out how much may start where something waits in partitions.
fn without_time_of_partitions(mut found: Snapshot) -> Snapshot {
    for task in found.tasks.iter_mut().filter(|task| task.in_partitions > 0) {
        task.startable = 0;
        for queue in found.queues.iter_mut().filter(|queue| *queue.queue == task.counts.queue) {
            queue.startable = 0;
        }
    }
    found
}

fn without_empty(mut counts: Counts) -> Counts {
    counts.tasks.retain(|of| {
        let ended = of.succeeded + of.dead + of.cancelled + of.expired;
        of.pending() + of.running + ended > 0
    });
    counts
}

/// Compares a list with filters.
pub(crate) async fn compare_filtered(
    sides: &Sides,
    queue: Option<Name>,
    task: Option<Name>,
    like: Option<&Job>,
    limit: usize,
) -> Result<(), TestCaseError> {
    let state: Option<State> = like.map(|job| job.state);
    compare_list(sides, Filter { queue, task, state, after: None, limit }, drop).await
}
