//! Bells: how a worker that sleeps learns that it may start something, without asking.
//!
//! Invariant: a startable job's bell is rung, or a popped bell is on its way to a claim, or no worker with room for it
//! waits. The writer rings after each commit; a claim ends by setting the bells of the lanes it looked at to the
//! truth. All handles on one file in this process share one [`Hub`]; what other processes write, `foreign` rings for.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use rusqlite::Connection;
use tokio::sync::Notify;

use super::called::Calls;
use super::ended::Ends;
use super::file_id::FileId;
use super::gates::{Sight, look};
use super::lanes::{Lane, LaneId, Lanes};
use crate::clock::Timestamp;
use crate::job::JobId;
use crate::name::Name;
use crate::store::types::{Room, Wait, Wake, WorkerId};

/// What a committed request has to tell.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Lanes in which a job became ready.
    pub(super) ready: Vec<LaneId>,
    /// Lanes of which a lease has ended, so that a cap may have room.
    pub(super) freed: Vec<LaneId>,
    /// Lanes whose gate was changed.
    pub(super) changed: Vec<LaneId>,
    /// What a claim saw at its end.
    pub(super) claim: Option<Truth>,
    /// Moments that were put in: due times and expiries.
    pub(super) earlier: Vec<(Name, Timestamp)>,
    /// The next moment of a queue, as it now is.
    pub(super) moments: Vec<(Name, Option<Timestamp>)>,
    pub(super) ended: Vec<JobId>,
    /// Workers of which a job was cancelled.
    pub(super) called: Vec<WorkerId>,
}

/// What a claim saw at its end.
#[derive(Debug)]
pub(super) struct Truth {
    pub(super) worker: WorkerId,
    pub(super) queue: Name,
    /// The tasks that it had room for.
    pub(super) tasks: Vec<Name>,
    /// All tasks of the queue of which something is still ready and all gates are open,
    pub(super) startable: Vec<Name>,
    /// and those of which something is ready behind a gate that is shut.
    pub(super) shut: Vec<Name>,
}

/// The bells, alarms and waiters of one database in this process.
#[derive(Debug, Default)]
pub(super) struct Hub {
    bells: Mutex<Bells>,
    pub(super) ends: Ends,
    pub(super) calls: Calls,
    watched: AtomicUsize,
}

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
    /// The waiter that keeps the time.
    keeper: Option<u64>,
}

#[derive(Debug, Default)]
struct Bell {
    is_rung: bool,
    /// Something was ready behind a gate that was shut, when it was last looked at.
    is_shut: bool,
    tick: u64,
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

/// The hubs of the open files of this process.
static HUBS: LazyLock<Mutex<HashMap<FileId, Weak<Hub>>>> = LazyLock::new(Mutex::default);

impl Hub {
    /// The hub of a file, shared by all its handles in this process.
    pub(super) fn of_file(file: &FileId) -> Arc<Self> {
        let mut hubs = HUBS.lock().unwrap_or_else(PoisonError::into_inner);
        hubs.retain(|_, hub| hub.strong_count() > 0);
        if let Some(hub) = hubs.get(file).and_then(Weak::upgrade) {
            return hub;
        }
        let hub = Arc::new(Self::default());
        hubs.insert(file.clone(), Arc::downgrade(&hub));
        hub
    }

    fn lock(&self) -> MutexGuard<'_, Bells> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anyone waits for what another process may write.
    pub(super) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire) > 0
    }

    /// Counts someone who waits, until the answer is dropped.
    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        self.watched.fetch_add(1, Ordering::AcqRel);
        Watch(self.clone())
    }

    /// The number of the newest ring.
    pub(super) fn tick(&self) -> u64 {
        self.lock().tick
    }

    /// Tells the news of a transaction that began after `tick`, when the clock shows `now`.
    pub(super) fn tell(
        &self,
        tick: u64,
        news: News,
        now: Timestamp,
        connection: &Connection,
        lanes: &mut Lanes,
    ) -> rusqlite::Result<()> {
        let mut bells = self.lock();
        // These first: they are what the request saw at its end, and what is put in below is no news to it.
        for (queue, moment) in &news.moments {
            bells.set_moment(queue, *moment, tick);
        }
        for &lane in &news.ready {
            let Lane { queue, task, .. } = lanes.name(connection, lane)?.clone();
            // A claim that follows in the same turn has looked at it: its end says more.
            let is_told = news.claim.as_ref().is_some_and(|claim| claim.looked_at(&queue, &task));
            if !is_told && !bells.is_rung(&queue, &task) {
                bells.set_right(connection, lanes, &queue, &task, now)?;
            }
        }
        if let Some(claim) = &news.claim {
            bells.set_to_truth(claim, tick);
        }
        for &lane in &news.freed {
            let queue = lanes.name(connection, lane)?.queue.clone();
            if news.claim.as_ref().is_none_or(|claim| claim.queue != queue) {
                for task in bells.shut(&queue) {
                    bells.set_right(connection, lanes, &queue, &task, now)?;
                }
            }
        }
        for &lane in &news.changed {
            let Lane { queue, task, .. } = lanes.name(connection, lane)?.clone();
            bells.set_right(connection, lanes, &queue, &task, now)?;
        }
        for (queue, moment) in &news.earlier {
            bells.put_in(queue, *moment);
        }
        drop(bells);
        for worker in news.called {
            self.calls.call(worker);
        }
        self.ends.tell(&news.ended, connection)
    }

    /// Sets the bell of a task right by what lies in the file, when the clock shows `now`.
    pub(super) fn set_right(
        &self,
        connection: &Connection,
        lanes: &mut Lanes,
        queue: &Name,
        task: &Name,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        self.lock().set_right(connection, lanes, queue, task, now)
    }

    /// Puts in a moment at which time alone may make something startable.
    pub(super) fn put_in(&self, queue: &Name, moment: Timestamp) {
        self.lock().put_in(queue, moment);
    }

    /// How many workers wait that could start one of these tasks.
    pub(super) fn waiting_for(&self, queue: &Name, tasks: &[Room]) -> usize {
        let wants = |waiter: &&Waiter| tasks.iter().any(|room| waiter.wait.wants(queue, &room.task));
        self.lock().waiters.values().filter(wants).count()
    }

    /// The queues for whose time somebody waits.
    pub(super) fn queues_awaited(&self) -> Vec<Name> {
        let bells = self.lock();
        let mut queues: Vec<Name> = bells
            .waiters
            .values()
            .flat_map(|waiter| waiter.wait.queues.iter().map(|(queue, _)| queue.clone()))
            .collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    /// Puts back what a worker has popped and will not use.
    pub(super) fn forget(&self, worker: WorkerId) {
        let mut bells = self.lock();
        for (queue, task) in bells.popped.remove(&worker).unwrap_or_default() {
            bells.ring(&queue, &task);
        }
        drop(bells);
        self.calls.forget(worker);
    }

    /// Joins those who wait; what is rung already is taken at once.
    pub(super) fn enter(&self, wait: Wait) -> (u64, Arc<Notify>) {
        let mut bells = self.lock();
        bells.entered += 1;
        let id = bells.entered;
        let notify = Arc::new(Notify::new());
        // One bell, even if more are rung: its claim may use up the room that another would need.
        let handed: Vec<(Name, Name)> = wait
            .queues
            .iter()
            .find_map(|(queue, tasks)| {
                let known = bells.queues.get_mut(queue)?;
                let task =
                    tasks.iter().find(|task| known.bells.get(*task).is_some_and(|bell| bell.is_rung))?;
                known.bells.get_mut(task)?.is_rung = false;
                Some((queue.clone(), task.clone()))
            })
            .into_iter()
            .collect();
        bells.waiters.insert(id, Waiter { wait, handed, notify: notify.clone() });
        (id, notify)
    }

    /// What a waiter does next, when the clock shows `now`. One that is woken has left.
    pub(super) fn next(&self, id: u64, now: Timestamp) -> Next {
        let mut bells = self.lock();
        let Some(waiter) = bells.waiters.get_mut(&id) else {
            return Next::Wake(Wake { queues: Vec::new() });
        };
        let handed = std::mem::take(&mut waiter.handed);
        let worker = waiter.wait.worker;
        let served: Vec<Name> = waiter.wait.queues.iter().map(|(queue, _)| queue.clone()).collect();
        let mut woken: Vec<Name> = handed.iter().map(|(queue, _)| queue.clone()).collect();
        bells.popped.entry(worker).or_default().extend(handed);
        let mut soonest: Option<Timestamp> = None;
        for queue in served {
            let known = bells.queues.entry(queue.clone()).or_default();
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
        bells.leave(id);
        Next::Wake(Wake { queues: woken })
    }

    /// Leaves those who wait, giving back what was handed over and not taken.
    pub(super) fn leave(&self, id: u64) {
        self.lock().leave(id);
    }
}

/// Someone waits as long as this lives.
#[derive(Debug)]
pub(super) struct Watch(Arc<Hub>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.watched.fetch_sub(1, Ordering::AcqRel);
    }
}

impl News {
    /// A moment at which time alone may make something of a queue startable.
    pub(super) fn put_in(&mut self, queue: &Name, moment: Timestamp) {
        match self.earlier.iter_mut().find(|(known, _)| known == queue) {
            Some((_, soonest)) => *soonest = moment.min(*soonest),
            None => self.earlier.push((queue.clone(), moment)),
        }
    }
}

impl Truth {
    fn looked_at(&self, queue: &Name, task: &Name) -> bool {
        self.queue == *queue && self.tasks.contains(task)
    }
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
    fn is_rung(&self, queue: &Name, task: &Name) -> bool {
        self.queues.get(queue).and_then(|known| known.bells.get(task)).is_some_and(|bell| bell.is_rung)
    }

    /// Tasks of a queue of which something was ready behind a gate that was shut.
    fn shut(&self, queue: &Name) -> Vec<Name> {
        let bells = self.queues.get(queue).map(|known| &known.bells);
        let shut = bells.into_iter().flatten().filter(|(_, bell)| bell.is_shut);
        shut.map(|(task, _)| task.clone()).collect()
    }

    /// Looks at a task: rings if it is startable; if a gate is shut, silences its bell until that opens.
    ///
    /// What is read here was committed, so whoever changes it later tells it later.
    fn set_right(
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

    /// Rings for a task: one waiter that wants it is woken, or the bell stays rung until one comes.
    fn ring(&mut self, queue: &Name, task: &Name) {
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
    fn set_to_truth(&mut self, claim: &Truth, tick: u64) {
        let mut opened = Vec::new();
        if let Some(known) = self.queues.get_mut(&claim.queue) {
            for (task, bell) in &mut known.bells {
                if claim.startable.contains(task) {
                    if bell.is_shut {
                        opened.push(task.clone());
                    }
                } else if bell.tick <= tick {
                    (bell.is_rung, bell.is_shut) = (false, false);
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
                self.ring(&claim.queue, task);
            }
        }
    }

    fn put_in(&mut self, queue: &Name, moment: Timestamp) {
        self.tick += 1;
        let tick = self.tick;
        let known = self.queues.entry(queue.clone()).or_default();
        known.moment_tick = tick;
        if known.moment.is_none_or(|next| moment < next) {
            known.moment = Some(moment);
            self.tell_keeper(queue);
        }
    }

    fn set_moment(&mut self, queue: &Name, moment: Option<Timestamp>, tick: u64) {
        let known = self.queues.entry(queue.clone()).or_default();
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

    fn leave(&mut self, id: u64) {
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
            self.ring(queue, task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new("test", text).expect("tests use valid names")
    }

    fn saw_nothing() -> Truth {
        Truth {
            worker: WorkerId::new(),
            queue: name("q"),
            tasks: vec![name("send")],
            startable: Vec::new(),
            shut: Vec::new(),
        }
    }

    fn wakes(hub: &Hub, now: i64) -> bool {
        let wait = Wait { worker: WorkerId::new(), queues: vec![(name("q"), Arc::from([name("send")]))] };
        let (id, _) = hub.enter(wait);
        let wakes = matches!(hub.next(id, Timestamp::from_millis(now)), Next::Wake(_));
        hub.leave(id);
        wakes
    }

    #[test]
    fn a_claim_does_not_silence_a_bell_that_was_rung_after_it_began_to_look() {
        // Another handle on the same file has committed and rung meanwhile.
        let hub = Hub::default();
        let tick = hub.tick();
        hub.lock().ring(&name("q"), &name("send"));
        hub.lock().set_to_truth(&saw_nothing(), tick);
        assert!(wakes(&hub, 0));
    }

    #[test]
    fn a_claim_silences_a_bell_that_was_rung_before() {
        let hub = Hub::default();
        hub.lock().ring(&name("q"), &name("send"));
        let tick = hub.tick();
        hub.lock().set_to_truth(&saw_nothing(), tick);
        assert!(!wakes(&hub, 0));
    }

    #[test]
    fn a_claim_does_not_forget_a_moment_that_was_put_in_after_it_began_to_look() {
        let hub = Hub::default();
        let tick = hub.tick();
        hub.lock().put_in(&name("q"), Timestamp::from_millis(5));
        hub.lock().set_moment(&name("q"), Some(Timestamp::from_millis(9)), tick);
        assert!(!wakes(&hub, 4) && wakes(&hub, 5));
    }

    fn serves_both() -> Wait {
        let tasks: Arc<[Name]> = Arc::from([name("send")]);
        Wait { worker: WorkerId::new(), queues: vec![(name("left"), tasks.clone()), (name("right"), tasks)] }
    }

    fn woken(hub: &Hub, id: u64, now: i64) -> Vec<Name> {
        match hub.next(id, Timestamp::from_millis(now)) {
            Next::Wake(wake) => wake.queues,
            Next::Sleep(_) => Vec::new(),
        }
    }

    #[test]
    fn a_waiter_takes_one_bell_and_leaves_the_others_to_whoever_has_room() {
        let hub = Hub::default();
        hub.lock().ring(&name("left"), &name("send"));
        hub.lock().ring(&name("right"), &name("send"));
        let (first, _) = hub.enter(serves_both());
        let (second, _) = hub.enter(serves_both());
        assert_eq!(woken(&hub, first, 0), [name("left")]);
        assert_eq!(woken(&hub, second, 0), [name("right")]);
    }

    #[test]
    fn a_keeper_takes_one_alarm_and_leaves_the_others_to_whoever_has_room() {
        let hub = Hub::default();
        let (first, _) = hub.enter(serves_both());
        let (second, _) = hub.enter(serves_both());
        hub.lock().put_in(&name("left"), Timestamp::from_millis(5));
        hub.lock().put_in(&name("right"), Timestamp::from_millis(5));
        assert!(woken(&hub, first, 4).is_empty());
        assert_eq!(woken(&hub, first, 5), [name("left")]);
        assert_eq!(woken(&hub, second, 5), [name("right")]);
    }
}
