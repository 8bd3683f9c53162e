//! What the server's messages are told to: those of this handle who wait for a bell, an end, or a call.
//!
//! A message is a kind, its body and the queue: `b` a bell that is handed to a wait, `m` the next moment for the wait that
//! keeps its queue's time, `e` the end of a job, `r` room for a producer. When the connection breaks, messages may be lost: then all who wait look
//! for themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{PushInfo, PushKind, Value};
use tokio::sync::Notify;

use super::wire::Unpacked;
use crate::clock::{Clock, Timestamp};
use crate::job::JobId;
use crate::name::Name;
use crate::store::types::{ProducerId, WorkerId};

/// Those who wait.
#[derive(Default)]
pub(super) struct Hub {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waits: HashMap<u64, Waiting>,
    ends: HashMap<JobId, (usize, Arc<Notify>)>,
    calls: HashMap<WorkerId, Calls>,
    rooms: HashMap<ProducerId, Arc<Notify>>,
}

/// The calls of a worker.
#[derive(Default)]
struct Calls {
    /// Whether it has looked for those from before it listened.
    has_looked: bool,
    notify: Arc<Notify>,
}

/// A wait that is under way.
#[derive(Default)]
struct Waiting {
    /// A bell was handed to it.
    bell: Option<Name>,
    /// It keeps the time of these queues.
    alarms: HashMap<Name, Alarm>,
    is_lost: bool,
    notify: Arc<Notify>,
}

/// A moment for which a wait keeps the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alarm {
    moment: Timestamp,
    /// When it is there, by this process's monotonic clock.
    elapsed: Duration,
}

impl Alarm {
    /// Sleeps until the moment. A clock that a test moves shows the store's time itself.
    pub(super) async fn ring(self, clock: &Clock) {
        match clock.manual_now() {
            Some(_) => clock.sleep_until(self.moment).await,
            None => clock.reach(self.elapsed).await,
        }
    }
}

/// What a wait does next.
pub(super) enum Next {
    /// A bell was handed to it.
    Bell(Name),
    /// The connection broke: what was rung is not known.
    Lost,
    /// Sleep until told, or until the alarm of this queue.
    Sleep(Option<(Name, Alarm)>),
}

/// A bell or a moment that was told to a wait which is not there any more.
pub(super) struct Stray {
    pub(super) number: u64,
    pub(super) worker: WorkerId,
    pub(super) queue: Name,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a message; answers what was told to nobody.
    pub(super) fn told(&self, push: &PushInfo, clock: &Clock) -> Option<Stray> {
        match (&push.kind, push.data.as_slice()) {
            (PushKind::Disconnection, _) => {
                self.lose_all();
                None
            }
            (PushKind::Message, [Value::BulkString(channel), Value::BulkString(message)]) => {
                if channel.ends_with(b":called") {
                    self.call(Unpacked(message).id().map(WorkerId::from_bytes)?);
                    return None;
                }
                self.take_in(message, clock)
            }
            _ => None,
        }
    }

    fn take_in(&self, message: &[u8], clock: &Clock) -> Option<Stray> {
        let (kind, message) = message.split_first()?;
        let mut message = Unpacked(message);
        let queue = |message: Unpacked<'_>| Name::new("queue", str::from_utf8(message.0).ok()?).ok();
        match kind {
            b'b' => {
                let (number, worker) = (message.number(6)?, WorkerId::from_bytes(message.id()?));
                let queue = queue(message)?;
                let mut state = self.lock();
                let Some(wait) = state.waits.get_mut(&number) else {
                    return Some(Stray { number, worker, queue });
                };
                wait.bell = Some(queue);
                wait.notify.notify_one();
            }
            b'm' => {
                let (number, worker) = (message.number(6)?, WorkerId::from_bytes(message.id()?));
                let (now, moment) = (message.moment()?, message.moment()?);
                let queue = queue(message)?;
                let mut state = self.lock();
                // Its leaving may have been lost: as long as it stands first, nobody else is told the time.
                let Some(wait) = state.waits.get_mut(&number) else {
                    return Some(Stray { number, worker, queue });
                };
                let elapsed = clock.elapsed().saturating_add(moment.since(now));
                wait.alarms.insert(queue, Alarm { moment, elapsed });
                wait.notify.notify_one();
            }
            b'e' => {
                let job = JobId::from_bytes(message.id()?);
                if let Some((_, notify)) = self.lock().ends.get(&job) {
                    notify.notify_waiters();
                }
            }
            b'r' => {
                let producer = ProducerId::from_bytes(message.id()?);
                if let Some(notify) = self.lock().rooms.get(&producer) {
                    notify.notify_one();
                }
            }
            _ => {}
        }
        None
    }

    fn lose_all(&self) {
        let mut state = self.lock();
        for wait in state.waits.values_mut() {
            wait.is_lost = true;
            wait.notify.notify_one();
        }
        for (_, notify) in state.ends.values() {
            notify.notify_waiters();
        }
        for notify in state.rooms.values() {
            notify.notify_one();
        }
        for calls in state.calls.values_mut() {
            calls.has_looked = false;
            calls.notify.notify_one();
        }
    }

    /// Joins those who wait for a bell.
    pub(super) fn enter(&self, number: u64) -> Arc<Notify> {
        self.lock().waits.entry(number).or_default().notify.clone()
    }

    pub(super) fn next(&self, number: u64) -> Next {
        let mut state = self.lock();
        let Some(wait) = state.waits.get_mut(&number) else { return Next::Lost };
        if let Some(queue) = wait.bell.take() {
            return Next::Bell(queue);
        }
        if wait.is_lost {
            return Next::Lost;
        }
        let soonest = wait.alarms.iter().min_by_key(|(_, alarm)| (alarm.elapsed, alarm.moment));
        Next::Sleep(soonest.map(|(queue, alarm)| (queue.clone(), *alarm)))
    }

    /// An alarm has rung: the queue tells the next moment when it is asked.
    pub(super) fn silence(&self, number: u64, queue: &Name) {
        if let Some(wait) = self.lock().waits.get_mut(&number) {
            wait.alarms.remove(queue);
        }
    }

    /// Leaves those who wait for a bell.
    pub(super) fn leave(&self, number: u64) {
        self.lock().waits.remove(&number);
    }

    /// Joins those who wait for the end of a job. Look whether it has ended only after this.
    pub(super) fn await_end(&self, job: JobId) -> Arc<Notify> {
        let mut state = self.lock();
        let (waiting, notify) = state.ends.entry(job).or_default();
        *waiting += 1;
        notify.clone()
    }

    pub(super) fn forget_end(&self, job: JobId) {
        let mut state = self.lock();
        if let Some((waiting, _)) = state.ends.get_mut(&job) {
            *waiting -= 1;
            if *waiting == 0 {
                state.ends.remove(&job);
            }
        }
    }

    /// Where a producer is told of room, from now on. What it is told while it does not listen is kept.
    pub(super) fn await_room(&self, producer: ProducerId) -> Arc<Notify> {
        self.lock().rooms.entry(producer).or_default().clone()
    }

    /// A producer waits no more; false if it did not.
    pub(super) fn forget_room(&self, producer: ProducerId) -> bool {
        self.lock().rooms.remove(&producer).is_some()
    }

    /// Where a worker's calls come in, from now on, and whether it has looked for those from before. A call that finds it
    /// busy is kept.
    pub(super) fn listen(&self, worker: WorkerId) -> (Arc<Notify>, bool) {
        let mut state = self.lock();
        let calls = state.calls.entry(worker).or_default();
        (calls.notify.clone(), calls.has_looked)
    }

    /// A worker has looked for the calls from before it listened: it hears all others.
    pub(super) fn looked(&self, worker: WorkerId) {
        if let Some(calls) = self.lock().calls.get_mut(&worker) {
            calls.has_looked = true;
        }
    }

    fn call(&self, worker: WorkerId) {
        if let Some(calls) = self.lock().calls.get(&worker) {
            calls.notify.notify_one();
        }
    }

    /// A worker has stopped.
    pub(super) fn forget(&self, worker: WorkerId) {
        self.lock().calls.remove(&worker);
    }
}
