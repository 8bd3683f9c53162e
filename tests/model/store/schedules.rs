//! schedule, schedules and tick. Who declares what is asked anew after each step.

use std::collections::BTreeMap;

use flexiq::internals::{
    DueTick, Enqueue, KEPT_ASLEEP, MOST_SCHEDULES, MOST_TOLD, Name, Origin, Planning, Schedule, Seen,
    Standby, TOLD_FOR, Tick, Ticked, Timestamp,
};
use flexiq::{Error, Result};

use super::enqueue::enqueue;
use super::manner::Manner;
use super::workers::publish_to;
use super::world::{Worker, World};

/// A schedule, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Stand {
    schedule: Schedule,
    origin: Origin,
    is_paused: bool,
    seen: Seen,
    last: Option<Timestamp>,
    last_skipped: Option<Timestamp>,
    asleep_since: Option<Timestamp>,
    /// When a worker is told of it, or when it is forgotten because it sleeps.
    pub(super) wanted_at: Option<Timestamp>,
}

impl Stand {
    fn begun(now: Timestamp, schedule: Schedule, origin: Origin) -> Self {
        Self {
            schedule,
            origin,
            is_paused: false,
            seen: Seen::Since(now),
            last: None,
            last_skipped: None,
            asleep_since: None,
            wanted_at: Some(now),
        }
    }

    /// It is told of when what it shows is due.
    fn tell_next(&mut self) {
        let (Seen::Since(moment) | Seen::Tick(moment)) = self.seen;
        self.wanted_at = match self.asleep_since {
            Some(since) => Some(since + KEPT_ASLEEP),
            None => (!self.is_paused).then_some(moment),
        };
    }

    /// It is set or declared anew.
    fn replace(&mut self, now: Timestamp, schedule: Schedule, origin: Origin) {
        let is_other = self.schedule.cron != schedule.cron;
        let was_asleep = self.asleep_since.take().is_some();
        (self.schedule, self.origin) = (schedule, origin);
        if is_other {
            self.seen = Seen::Since(now);
        }
        if is_other || was_asleep {
            self.tell_next();
        }
    }
}

pub(super) fn schedule(
    world: &mut World,
    now: Timestamp,
    queue: &Name,
    name: &Name,
    planning: Planning,
) -> Result<()> {
    let key = (queue.clone(), name.clone());
    match planning {
        Planning::Set(schedule) => {
            if !world.queues.contains(queue) {
                world.know(now, queue);
                publish_to(world, now, [queue.clone()]);
            }
            let known = world.schedules.keys().filter(|(of, _)| of == queue).count();
            match world.schedules.get_mut(&key) {
                Some(stand) => stand.replace(now, *schedule, Origin::Set),
                None if known >= MOST_SCHEDULES => {
                    return Err(Error::Invalid {
                        what: format!("schedule of queue {queue}"),
                        given: "one more".into(),
                        accepted: format!("at most {MOST_SCHEDULES}: delete one with delete_schedule"),
                    });
                }
                None => drop(world.schedules.insert(key, Stand::begun(now, *schedule, Origin::Set))),
            }
        }
        Planning::Removed => {
            let goes = |stand: &Stand| stand.origin == Origin::Set || stand.asleep_since.is_some();
            if world.schedules.get(&key).is_some_and(goes) {
                world.schedules.remove(&key);
            }
            if world.queues.contains(queue) {
                publish_to(world, now, [queue.clone()]);
            }
        }
        Planning::Paused(is_paused) => {
            if let Some(stand) = world.schedules.get_mut(&key).filter(|stand| stand.is_paused != is_paused) {
                stand.is_paused = is_paused;
                if !is_paused {
                    stand.seen = Seen::Since(now);
                }
                stand.tell_next();
            }
        }
    }
    Ok(())
}

/// The crons that hold of what workers declare: by name, the home queue and the schedule.
pub(super) fn declared(world: &World) -> BTreeMap<Name, (Name, Schedule)> {
    let mut living: Vec<&Worker> = world.workers.values().filter(|worker| worker.is_alive).collect();
    living.sort_unstable_by_key(|worker| worker.born);
    let mut declared = BTreeMap::new();
    for task in living.iter().flat_map(|worker| &worker.hello.tasks) {
        // The youngest comes last; that there is none is its word, too.
        match &task.schedule {
            Some(schedule) => {
                declared.insert(task.task.clone(), (task.queue.clone(), schedule.clone()));
            }
            None => drop(declared.remove(&task.task)),
        }
    }
    declared
}

/// What workers declare now is what there is.
pub(super) fn settle(world: &mut World, now: Timestamp) {
    let declared = declared(world);
    for ((queue, name), stand) in &mut world.schedules {
        let holds = declared.get(name).is_some_and(|(home, _)| home == queue);
        if stand.origin == Origin::Declared && !holds && stand.asleep_since.is_none() {
            stand.asleep_since = Some(now);
            stand.tell_next();
        }
    }
    for (name, (queue, schedule)) in declared {
        match world.schedules.get_mut(&(queue.clone(), name.clone())) {
            Some(stand) if stand.origin == Origin::Set => {}
            Some(stand) => stand.replace(now, schedule, Origin::Declared),
            None => {
                world.schedules.insert((queue, name), Stand::begun(now, schedule, Origin::Declared));
            }
        }
    }
}

/// When the first schedule of a queue is due.
pub(super) fn moment(world: &World, queue: &Name) -> Option<Timestamp> {
    let of_queue = world.schedules.iter().filter(|((of, _), _)| of == queue);
    of_queue.filter_map(|(_, stand)| stand.wanted_at).min()
}

/// Whether a schedule of a queue is due.
pub(super) fn is_due(world: &World, now: Timestamp, queue: &Name) -> bool {
    moment(world, queue).is_some_and(|moment| moment <= now)
}

/// Tells of the schedules of a queue that are due, and forgets those that have slept for long.
pub(super) fn tell_due(world: &mut World, now: Timestamp, queue: &Name) -> Vec<DueTick> {
    let is_over = |stand: &Stand| stand.wanted_at.is_some_and(|moment| moment <= now);
    world.schedules.retain(|(of, _), stand| of != queue || stand.asleep_since.is_none() || !is_over(stand));
    let due = world.schedules.iter().filter(|((of, _), stand)| of == queue && is_over(stand));
    let mut due: Vec<(Option<Timestamp>, Name)> =
        due.map(|((_, name), stand)| (stand.wanted_at, name.clone())).collect();
    due.sort();
    due.truncate(MOST_TOLD);
    let mut told: Vec<DueTick> = Vec::new();
    for (_, name) in due {
        let stand =
            world.schedules.get_mut(&(queue.clone(), name.clone())).expect("it was found in this very step");
        stand.wanted_at = Some(now + TOLD_FOR);
        let (cron, catch_up) = (stand.schedule.cron.clone(), stand.schedule.catch_up);
        told.push(DueTick { queue: queue.clone(), name, cron, catch_up, seen: stand.seen, now });
    }
    told.sort_by(|one, other| one.name.cmp(&other.name));
    told
}

pub(super) fn tick(world: &mut World, now: Timestamp, tick: Tick) -> Result<Ticked> {
    let Tick { due, next, job, max_pending } = tick;
    let key = (due.queue.clone(), due.name);
    let Some(stand) = world.schedules.get(&key).cloned() else { return Ok(Ticked::Late) };
    let is_quiet = stand.is_paused || stand.asleep_since.is_some();
    if is_quiet || stand.schedule.cron != due.cron || stand.seen != due.seen {
        return Ok(Ticked::Late);
    }
    let mut advanced = Stand { seen: Seen::Tick(next), ..stand };
    let mut ticked = Ticked::Done;
    if let (Some(id), Seen::Tick(moment)) = (job, due.seen) {
        let jobs = vec![advanced.schedule.job(id)];
        match enqueue(world, now, Enqueue { queue: due.queue, jobs, max_pending, producer: None }) {
            Ok(_) => advanced.last = Some(moment),
            Err(Error::QueueFull { .. } | Error::PartitionFull { .. }) => {
                (ticked, advanced.last_skipped) = (Ticked::Skipped, Some(moment));
            }
            Err(other) => return Err(other),
        }
    }
    advanced.tell_next();
    world.schedules.insert(key, advanced);
    Ok(ticked)
}

/// All schedules, sorted by name and queue.
pub(super) fn all(world: &World) -> Vec<Standby> {
    let mut all: Vec<Standby> = world
        .schedules
        .iter()
        .map(|((queue, name), stand)| Standby {
            queue: queue.clone(),
            name: name.clone(),
            schedule: stand.schedule.clone(),
            origin: stand.origin,
            seen: stand.seen,
            last: stand.last,
            last_skipped: stand.last_skipped,
            is_paused: stand.is_paused,
            is_asleep: stand.asleep_since.is_some(),
        })
        .collect();
    all.sort_by(|one, other| (&one.name, &one.queue).cmp(&(&other.name, &other.queue)));
    all
}

/// The schedules that a claim tells of: the one store looks whether any is due before it looks for silent workers, the other
/// behind that.
pub(super) fn tell_in_claim(world: &mut World, now: Timestamp, queue: &Name, was_due: bool) -> Vec<DueTick> {
    settle(world, now);
    let is_due = if world.manner == Manner::Sqlite { was_due } else { is_due(world, now, queue) };
    if is_due { tell_due(world, now, queue) } else { Vec::new() }
}
