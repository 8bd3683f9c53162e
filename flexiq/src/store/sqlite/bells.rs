//! Bells: how a worker that sleeps learns that it may start something, without asking.
//!
//! Invariant: a startable job's bell is rung, or a popped bell is on its way to a claim, or no worker with room for it
//! waits. The writer rings after each commit; a claim ends by setting the bells of the lanes it looked at to the truth.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::Notify;

use super::gates::{Sight, look};
use super::lanes::Lanes;
use super::news::Truth;
use crate::clock::Timestamp;
use crate::name::Name;
use crate::store::types::{Room, Wait, Wake, WorkerId};

/// The bells, alarms and waiters of one database in this process.
#[derive(Debug, Default)]
pub(super) struct Bells {
    /// Counts the rings, so that a claim clears no bell that was rung after it began to look.
    tick: u64,
    queues: HashMap<Name, QueueBells>,
    /// Those who wait, by number: the lowest waits longest.
    waiters: BTreeMap<u64, Waiter>,
    entered: u64,
    /// Bells that were popped by a worker which has not claimed yet.
    popped: HashMap<WorkerId, Vec<(Name, Name)>>,
}

#[derive(Debug, Default)]
struct QueueBells {
    bells: HashMap<Name, Bell>,
    /// The next moment at which time alone may make something startable.
    moment: Option<Timestamp>,
    moment_tick: u64,
    /// The worker that took the alarm of a moment and has not claimed yet.
    alarm_taken: Option<(WorkerId, Timestamp)>,
    /// The waiter that keeps the time.
    keeper: Option<u64>,
}

#[derive(Debug, Default)]
struct Bell {
    is_rung: bool,
    /// Something was ready behind a gate that was shut, when it was last looked at.
    is_shut: bool,
    tick: u64,
    /// The newest waiter when it was rung for something new: those share what a claim leaves over.
    newest: Option<u64>,
}

#[derive(Debug)]
struct Waiter {
    wait: Wait,
    /// Bells that were handed to it and not yet taken.
    handed: Vec<(Name, Name)>,
    notify: Arc<Notify>,
}

/// What a waiter does next.
pub(super) enum Next {
    Wake(Wake),
    /// Sleep until told, or until this moment.
    Sleep(Option<Timestamp>),
}

impl Wait {
    fn wants(&self, queue: &Name, task: &Name) -> bool {
        self.queues.iter().any(|(served, tasks)| served == queue && tasks.contains(task))
    }

    fn serves(&self, queue: &Name) -> bool {
        self.queues.iter().any(|(served, _)| served == queue)
    }
}

impl Bells {
    /// The number of the newest ring.
    pub(super) fn tick(&self) -> u64 {
        self.tick
    }

    /// Joins those who wait; what is rung already is taken at once.
    pub(super) fn enter(&mut self, wait: Wait) -> (u64, Arc<Notify>) {
        self.entered += 1;
        let id = self.entered;
        let notify = Arc::new(Notify::new());
        // One bell, even if more are rung: its claim may use up the room that another would need.
        let handed: Vec<(Name, Name)> = wait
            .queues
            .iter()
            .find_map(|(queue, tasks)| {
                let known = self.queues.get_mut(queue)?;
                let task =
                    tasks.iter().find(|task| known.bells.get(*task).is_some_and(|bell| bell.is_rung))?;
                known.bells.get_mut(task)?.is_rung = false;
                Some((queue.clone(), task.clone()))
            })
            .into_iter()
            .collect();
        self.waiters.insert(id, Waiter { wait, handed, notify: notify.clone() });
        (id, notify)
    }

    /// What a waiter does next, when the clock shows `now`. One that is woken has left.
    pub(super) fn next(&mut self, id: u64, now: Timestamp) -> Next {
        let Some(waiter) = self.waiters.get_mut(&id) else {
            return Next::Wake(Wake { queues: Vec::new() });
        };
        let handed = std::mem::take(&mut waiter.handed);
        let worker = waiter.wait.worker;
        let served: Vec<Name> = waiter.wait.queues.iter().map(|(queue, _)| queue.clone()).collect();
        let mut woken: Vec<Name> = handed.iter().map(|(queue, _)| queue.clone()).collect();
        self.popped.entry(worker).or_default().extend(handed);
        let mut soonest: Option<Timestamp> = None;
        for queue in served {
            let known = self.queues.entry(queue.clone()).or_default();
            if *known.keeper.get_or_insert(id) != id {
                continue;
            }
            match known.moment {
                // The alarm is popped: the claim that follows puts in the next moment.
                Some(moment) if moment <= now => {
                    // One alarm at a time, for the reason that holds for bells. Leaving passes the others on.
                    if !woken.is_empty() {
                        break;
                    }
                    known.moment = None;
                    known.alarm_taken = Some((worker, moment));
                    woken.push(queue);
                }
                Some(moment) => soonest = Some(soonest.map_or(moment, |other| other.min(moment))),
                None => {}
            }
        }
        if woken.is_empty() {
            return Next::Sleep(soonest);
        }
        woken.sort_unstable();
        woken.dedup();
        self.leave(id);
        Next::Wake(Wake { queues: woken })
    }

    /// How many workers wait that could start one of these tasks, and did when its bell was rung: one that comes back to
    /// wait has had its share.
    pub(super) fn waiting_for(&self, queue: &Name, tasks: &[Room]) -> usize {
        let bells = self.queues.get(queue).map(|known| &known.bells);
        let newest = |room: &Room| bells?.get(&room.task)?.newest;
        let newest = tasks.iter().filter_map(newest).max().unwrap_or(u64::MAX);
        let wants = |waiter: &&Waiter| tasks.iter().any(|room| waiter.wait.wants(queue, &room.task));
        self.waiters.range(..=newest).map(|(_, waiter)| waiter).filter(wants).count()
    }

    /// The queues for whose time somebody waits.
    pub(super) fn queues_awaited(&self) -> Vec<Name> {
        let mut queues: Vec<Name> = self
            .waiters
            .values()
            .flat_map(|waiter| waiter.wait.queues.iter().map(|(queue, _)| queue.clone()))
            .collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    /// The next moment after this one at which time alone may make something startable, in any queue.
    #[cfg(feature = "testing")]
    pub(super) fn next_moment(&self, after: Timestamp) -> Option<Timestamp> {
        self.queues.values().filter_map(|known| known.moment).filter(|&moment| moment > after).min()
    }

    /// Rings again for what a worker has popped and will not use: bells, and alarms that no claim has answered.
    pub(super) fn put_back(&mut self, worker: WorkerId) {
        for (queue, task) in self.popped.remove(&worker).unwrap_or_default() {
            self.ring_left_over(&queue, &task);
        }
        let taken = self.queues.iter_mut().filter_map(|(queue, known)| {
            let (_, moment) = known.alarm_taken.take_if(|(taker, _)| *taker == worker)?;
            Some((queue.clone(), moment))
        });
        for (queue, moment) in taken.collect::<Vec<_>>() {
            self.put_in(&queue, moment);
        }
    }

    pub(super) fn is_rung(&self, queue: &Name, task: &Name) -> bool {
        self.queues.get(queue).and_then(|known| known.bells.get(task)).is_some_and(|bell| bell.is_rung)
    }

    /// Tasks of a queue of which something was ready behind a gate that was shut.
    pub(super) fn shut(&self, queue: &Name) -> Vec<Name> {
        let bells = self.queues.get(queue).map(|known| &known.bells);
        let shut = bells.into_iter().flatten().filter(|(_, bell)| bell.is_shut);
        shut.map(|(task, _)| task.clone()).collect()
    }

    /// Looks at a task: rings if it is startable; if a gate is shut, silences its bell until that opens.
    ///
    /// What is read here was committed, so whoever changes it later tells it later.
    pub(super) fn set_right(
        &mut self,
        connection: &Connection,
        lanes: &mut Lanes,
        queue: &Name,
        task: &Name,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        let Some(id) = lanes.find_queue(connection, queue)? else { return Ok(()) };
        match look(connection, (queue, id), task, now)? {
            Sight::Empty => {}
            Sight::Startable => self.ring(queue, task),
            Sight::Shut(opens_at) => {
                let bell = self.bell(queue, task);
                (bell.is_rung, bell.is_shut) = (false, true);
                if let Some(opens_at) = opens_at {
                    self.put_in(queue, opens_at);
                }
            }
        }
        Ok(())
    }

    fn bell(&mut self, queue: &Name, task: &Name) -> &mut Bell {
        self.queues.entry(queue.clone()).or_default().bells.entry(task.clone()).or_default()
    }

    /// Rings for something new of a task: one waiter that wants it is woken, or the bell stays rung until one comes.
    pub(super) fn ring(&mut self, queue: &Name, task: &Name) {
        let entered = self.entered;
        self.bell(queue, task).newest = Some(entered);
        self.ring_left_over(queue, task);
    }

    /// Rings for what a claim has left over.
    fn ring_left_over(&mut self, queue: &Name, task: &Name) {
        self.tick += 1;
        let tick = self.tick;
        let bell = self.bell(queue, task);
        (bell.tick, bell.is_shut) = (tick, false);
        if bell.is_rung {
            return;
        }
        // One that has been handed a bell of this queue will see this task, too, if it can; it sets the bell right.
        let wants = |waiter: &&mut Waiter| waiter.handed.is_empty() && waiter.wait.wants(queue, task);
        match self.waiters.values_mut().find(wants) {
            Some(waiter) => {
                waiter.handed.push((queue.clone(), task.clone()));
                waiter.notify.notify_one();
            }
            None => self.bell(queue, task).is_rung = true,
        }
    }

    /// A claim has seen all that waits in its queue.
    pub(super) fn set_to_truth(&mut self, claim: &Truth, tick: u64) {
        let mut opened = Vec::new();
        if let Some(known) = self.queues.get_mut(&claim.queue) {
            for (task, bell) in &mut known.bells {
                if claim.startable.contains(task) {
                    if bell.is_shut {
                        opened.push(task.clone());
                    }
                } else if bell.tick <= tick {
                    (bell.is_rung, bell.is_shut, bell.newest) = (false, false, None);
                }
            }
        }
        for task in &claim.shut {
            let bell = self.bell(&claim.queue, task);
            if !bell.is_rung {
                bell.is_shut = true;
            }
        }
        let mut unused = Vec::new();
        if let Some(popped) = self.popped.get_mut(&claim.worker) {
            popped.retain(|(queue, task)| {
                let is_answered = *queue == claim.queue;
                if is_answered && !claim.tasks.contains(task) {
                    unused.push(task.clone());
                }
                !is_answered
            });
            if popped.is_empty() {
                self.popped.remove(&claim.worker);
            }
        }
        for task in &claim.startable {
            if claim.tasks.contains(task) || unused.contains(task) || opened.contains(task) {
                self.ring_left_over(&claim.queue, task);
            }
        }
    }

    pub(super) fn put_in(&mut self, queue: &Name, moment: Timestamp) {
        self.tick += 1;
        let tick = self.tick;
        let known = self.queues.entry(queue.clone()).or_default();
        known.moment_tick = tick;
        if known.moment.is_none_or(|next| moment < next) {
            known.moment = Some(moment);
            self.tell_keeper(queue);
        }
    }

    pub(super) fn set_moment(&mut self, queue: &Name, moment: Option<Timestamp>, tick: u64) {
        let known = self.queues.entry(queue.clone()).or_default();
        known.alarm_taken = None;
        let moment = match moment {
            // What was put in meanwhile may not have been seen.
            _ if known.moment_tick > tick => [known.moment, moment].into_iter().flatten().min(),
            seen => seen,
        };
        if known.moment != moment {
            known.moment = moment;
            self.tell_keeper(queue);
        }
    }

    /// Makes the keeper of a queue look at the next moment, or finds it a keeper.
    fn tell_keeper(&mut self, queue: &Name) {
        let keeper = self.queues.get(queue).and_then(|known| known.keeper);
        let waiter = match keeper {
            Some(keeper) => self.waiters.get(&keeper),
            None => self.waiters.values().find(|waiter| waiter.wait.serves(queue)),
        };
        if let Some(waiter) = waiter {
            waiter.notify.notify_one();
        }
    }

    pub(super) fn leave(&mut self, id: u64) {
        let Some(waiter) = self.waiters.remove(&id) else { return };
        for (queue, _) in &waiter.wait.queues {
            if let Some(known) = self.queues.get_mut(queue)
                && known.keeper == Some(id)
            {
                known.keeper = None;
                self.tell_keeper(queue);
            }
        }
        for (queue, task) in &waiter.handed {
            self.ring_left_over(queue, task);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    fn name(text: &str) -> Name {
        Name::new("test", text).expect("tests use valid names")
    }

    fn saw_nothing() -> Truth {
        Truth {
            worker: WorkerId::new(),
            queue: name("q"),
            tasks: HashSet::from([name("send")]),
            startable: BTreeSet::new(),
            shut: Vec::new(),
        }
    }

    fn wakes(bells: &mut Bells, now: i64) -> bool {
        let wait = Wait { worker: WorkerId::new(), queues: vec![(name("q"), Arc::from([name("send")]))] };
        let (id, _) = bells.enter(wait);
        let wakes = matches!(bells.next(id, Timestamp::from_millis(now)), Next::Wake(_));
        bells.leave(id);
        wakes
    }

    #[test]
    fn a_claim_does_not_silence_a_bell_that_was_rung_after_it_began_to_look() {
        // Another handle on the same file has committed and rung meanwhile.
        let mut bells = Bells::default();
        let tick = bells.tick;
        bells.ring(&name("q"), &name("send"));
        bells.set_to_truth(&saw_nothing(), tick);
        assert!(wakes(&mut bells, 0));
    }

    #[test]
    fn a_claim_silences_a_bell_that_was_rung_before() {
        let mut bells = Bells::default();
        bells.ring(&name("q"), &name("send"));
        let tick = bells.tick;
        bells.set_to_truth(&saw_nothing(), tick);
        assert!(!wakes(&mut bells, 0));
    }

    #[test]
    fn a_claim_does_not_forget_a_moment_that_was_put_in_after_it_began_to_look() {
        let mut bells = Bells::default();
        let tick = bells.tick;
        bells.put_in(&name("q"), Timestamp::from_millis(5));
        bells.set_moment(&name("q"), Some(Timestamp::from_millis(9)), tick);
        assert!(!wakes(&mut bells, 4) && wakes(&mut bells, 5));
    }

    #[test]
    fn a_keeper_that_stops_before_its_claim_gives_back_the_alarm() {
        let mut bells = Bells::default();
        bells.put_in(&name("q"), Timestamp::from_millis(5));
        let keeper = serves_both();
        let worker = keeper.worker;
        let (id, _) = bells.enter(Wait { queues: vec![(name("q"), Arc::from([name("send")]))], ..keeper });
        assert_eq!(woken(&mut bells, id, 5), [name("q")]);
        assert!(!wakes(&mut bells, 5), "it is on its way to a claim");
        bells.put_back(worker);
        assert!(wakes(&mut bells, 5));
    }

    fn serves_both() -> Wait {
        let tasks: Arc<[Name]> = Arc::from([name("send")]);
        Wait { worker: WorkerId::new(), queues: vec![(name("left"), tasks.clone()), (name("right"), tasks)] }
    }

    fn woken(bells: &mut Bells, id: u64, now: i64) -> Vec<Name> {
        match bells.next(id, Timestamp::from_millis(now)) {
            Next::Wake(wake) => wake.queues,
            Next::Sleep(_) => Vec::new(),
        }
    }

    #[test]
    fn a_waiter_takes_one_bell_and_leaves_the_others_to_whoever_has_room() {
        let mut bells = Bells::default();
        bells.ring(&name("left"), &name("send"));
        bells.ring(&name("right"), &name("send"));
        let (first, _) = bells.enter(serves_both());
        let (second, _) = bells.enter(serves_both());
        assert_eq!(woken(&mut bells, first, 0), [name("left")]);
        assert_eq!(woken(&mut bells, second, 0), [name("right")]);
    }

    #[test]
    fn a_keeper_takes_one_alarm_and_leaves_the_others_to_whoever_has_room() {
        let mut bells = Bells::default();
        let (first, _) = bells.enter(serves_both());
        let (second, _) = bells.enter(serves_both());
        bells.put_in(&name("left"), Timestamp::from_millis(5));
        bells.put_in(&name("right"), Timestamp::from_millis(5));
        assert!(woken(&mut bells, first, 4).is_empty());
        assert_eq!(woken(&mut bells, first, 5), [name("left")]);
        assert_eq!(woken(&mut bells, second, 5), [name("right")]);
    }
}
