//! All gates at once, while they change: nothing starts that one of them forbids, nothing is left idle that all admit, and
//! of what all admit the most urgent starts first.

use flexiq::JobId;
use flexiq::internals::{Claim, Name, Scope};

use super::Violation;
use super::scene::{Scene, Shut};
use super::starts::Word;
use crate::ledger::{Act, Deed, Lane, Place};

/// What was found in acts that keep the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Jobs that started.
    pub starts: usize,
    /// Claims that had room for a job which a gate kept waiting.
    pub kept: usize,
}

/// Every start was one that all gates admit at its moment, and was the most urgent of them; and no claim with room left
/// behind what all of them admit.
///
/// # Errors
///
/// [`Violation::OverCap`], [`Violation::OverRate`], [`Violation::StartedShut`], [`Violation::OutOfOrder`],
/// [`Violation::OverRoom`] and [`Violation::LeftIdle`].
pub fn gates<'a>(acts: impl IntoIterator<Item = &'a Act>) -> Result<Judged, Violation> {
    let (mut scene, mut judged) = (Scene::default(), Judged::default());
    for Act { at, deed } in acts {
        let Deed::Claimed { queue, claim, jobs, more } = deed else {
            scene.take(*at, deed);
            continue;
        };
        let mut room = claim.clone();
        for &job in jobs {
            let task = started(&scene, *at, queue, &room, job)?.task.clone();
            take_room(&mut room, &task);
            scene.start(*at, job);
        }
        judged.starts += jobs.len();
        let mut kept = false;
        for (job, (lane, place)) in &scene.waiting {
            if !could_start(*at, queue, &room, lane, *place) {
                continue;
            }
            if scene.is_open(*at, lane) && !more {
                return Err(Violation::LeftIdle { job: *job, at: *at });
            }
            kept |= !scene.is_open(*at, lane);
        }
        judged.kept += usize::from(kept);
    }
    Ok(judged)
}

/// A job that starts waited for it, its gates admit it, and none is before it. Answers its lane.
fn started<'a>(
    scene: &'a Scene,
    at: i64,
    queue: &Name,
    room: &Claim,
    job: JobId,
) -> Result<&'a Lane, Violation> {
    let Some((lane, place)) = scene.waiting.get(&job).filter(|(_, place)| place.due <= at) else {
        return Err(Violation::StartedShut { job, gate: "it does not wait, or is not due".into(), at });
    };
    if !could_start(at, queue, room, lane, *place) {
        return Err(Violation::OverRoom { job, at });
    }
    for scope in lane.gates() {
        if let Err(shut) = scene.ask(at, &scope) {
            return Err(violation(job, at, &scope, shut));
        }
    }
    for (other, (beside, before)) in &scene.waiting {
        if could_start(at, queue, room, beside, *before)
            && is_before((lane, *place, job), (beside, *before, *other))
            && scene.is_open(at, beside)
        {
            return Err(Violation::OutOfOrder { job, before: *other, at });
        }
    }
    Ok(lane)
}

/// Whether there is room for a job of this queue, and it is due.
fn could_start(at: i64, queue: &Name, room: &Claim, lane: &Lane, place: Place) -> bool {
    let task = room.tasks.iter().find(|room| room.task == lane.task);
    let has_room =
        task.is_some_and(|task| task.at_most > 0 && room.slots.get(task.slot).is_some_and(|&free| free > 0));
    lane.queue == *queue && place.due <= at && has_room
}

fn take_room(room: &mut Claim, task: &Name) {
    if let Some(taken) = room.tasks.iter_mut().find(|room| room.task == *task) {
        taken.at_most -= 1;
        room.slots[taken.slot] -= 1;
    }
}

/// Whether another goes before a job: the more urgent always, the older within its lane and where neither has a partition.
fn is_before(
    (lane, place, job): (&Lane, Place, JobId),
    (beside, before, other): (&Lane, Place, JobId),
) -> bool {
    let by_age = lane == beside || lane.partition.is_empty() && beside.partition.is_empty();
    before.priority > place.priority
        || by_age && before.priority == place.priority && (before.due, other) < (place.due, job)
}

fn violation(job: JobId, at: i64, scope: &Scope, shut: Shut) -> Violation {
    let what = format!("{scope:?}");
    match shut {
        Shut::Full { cap, found } => Violation::OverCap { what, cap, found, at },
        Shut::Spent(Word::No { rate, found, from }) => Violation::OverRate {
            what,
            most: if rate.spread { 1 } else { rate.starts as usize },
            period_ms: i64::try_from(rate.period.as_millis()).unwrap_or(i64::MAX),
            found,
            from,
        },
        other => Violation::StartedShut { job, gate: format!("{what} is {other:?}"), at },
    }
}
