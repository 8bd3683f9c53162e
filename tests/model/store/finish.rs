//! finish: what each way to end does to a job, if its lease is still the worker's.

use flexiq::internals::{Due, Finish, Finished, Held, Name, Scope, Timestamp, Transition, WorkerId};
use flexiq::{DeadReason, ScheduledReason, State};

use super::record::{Cancel, Record};
use super::world::World;

pub(super) fn finish(
    world: &mut World,
    now: Timestamp,
    worker: WorkerId,
    queue: &Name,
    end: &Finish,
) -> Finished {
    let Some(record) = world.held(worker, end.lease).filter(|record| record.queue == *queue) else {
        return Finished::LeaseLost;
    };
    let is_cancelled = record.cancel != Cancel::No;
    let (mut transition, mut was_called) = (end.transition.clone(), false);
    if let Transition::Schedule { reason: ScheduledReason::Limit, due, .. } = &mut transition
        && !is_cancelled
        && let Some((called, _)) = world.calls.remove(&end.lease.job)
    {
        *due = Due::At(due.from(now).min(called));
        was_called = true;
    }
    let record = world.job(end.lease.job);
    if let Some(notes) = &end.notes {
        record.chronicle.keep(end.lease, notes);
    }
    if !is_cancelled && let Some((death, error)) = setback(&transition) {
        let attempt = record.failures + 1;
        record.chronicle.set_back((now, record.runs, attempt, end.setback, error, death));
    }
    let old_place = record.due_at;
    carry_out(record, now, transition);
    if was_called && record.state == State::Ready {
        record.due_at = old_place;
    }
    if let Some(hold) = end.hold {
        let scope = match hold.what {
            Held::Queue => Scope::Queue(queue.clone()),
            Held::Partition if !record.partition.is_empty() => {
                Scope::Partition(record.task.clone(), record.partition.clone())
            }
            Held::Task | Held::Partition => Scope::Task(record.task.clone()),
        };
        world.gates.hold(queue, scope, now + hold.length);
    }
    Finished::Done
}

/// Whether a run that ends so sets its job back: the death of the job, if it is, and what happened.
fn setback(transition: &Transition) -> Option<(Option<DeadReason>, String)> {
    match transition {
        Transition::Schedule { reason: ScheduledReason::Retry, error, .. } => {
            Some((None, error.clone().unwrap_or_default()))
        }
        Transition::Kill { reason, error } => Some((Some(*reason), error.clone().unwrap_or_default())),
        _ => None,
    }
}

fn carry_out(record: &mut Record, now: Timestamp, transition: Transition) {
    let is_cancelled = record.cancel != Cancel::No;
    if let Transition::Schedule { error: Some(error), .. } | Transition::Kill { error: Some(error), .. } =
        &transition
    {
        record.last_error = Some(error.clone());
    }
    match transition {
        Transition::Succeed { value, keep } => record.succeed(now, value, keep),
        // Whatever else it says would run the job again, or blame it for having been stopped.
        _ if is_cancelled => record.cancel(now),
        Transition::Cancel => record.cancel(now),
        Transition::Release => record.release(),
        Transition::PutBack => {
            record.deferrals += 1;
            record.release();
        }
        Transition::Schedule { reason, due, .. } => {
            if matches!(reason, ScheduledReason::Deferral | ScheduledReason::Limit) {
                record.deferrals += 1;
            } else {
                record.failures += 1;
                // It has been started in earnest.
                record.expires_at = None;
            }
            record.wait_until(due.from(now), now, State::Scheduled(reason));
        }
        Transition::Kill { reason, .. } => {
            if reason == DeadReason::Deferrals {
                record.deferrals += 1;
            } else {
                record.failures += 1;
            }
            record.die(now, reason);
        }
    }
}
