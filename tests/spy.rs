//! A store that can be watched and disturbed: it counts the calls of each verb, and fails those it is told to.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flexiq::internals::{
    Ask, Asked, Beat, BeatAnswer, Change, Clock, Counts, Enqueue, Enqueued, Explanation, Filter, Finding,
    GiveBack, Hello, JobKey, Name, Page, Payload, Planning, ProducerId, Repair, Retried, Scope, Snapshot,
    Standby, Standing, Step, Store, Stored, Swept, Tell, Tick, Ticked, Timestamp, Turn, TurnAnswer, Wait,
    Wake, WorkerId,
};
use flexiq::{Cancelled, Effect, Error, Job, JobId, Story};
use tokio::sync::Notify;

use crate::soon;

/// The verbs that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Jobs are stored.
    Enqueue,
    /// Runs end and jobs are claimed.
    Turn,
    /// Leases are renewed.
    Extend,
    /// Runs tell of themselves.
    Tell,
    /// A worker registers. Not disturbed.
    Register,
    /// A permit is asked for.
    Acquire,
    /// Permits are given back.
    GiveBack,
    /// A schedule advances.
    Tick,
    /// A worker sleeps. Counted when it begins to, and not disturbed.
    Wait,
    /// A producer waits for room. Counted when it begins to, and not disturbed.
    Room,
}

/// Whether a disturbed call took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The request was lost.
    Before,
    /// The answer was lost.
    After,
    /// It is neither carried out nor answered, however long one waits.
    Never,
}

/// A store that can be watched and disturbed.
pub struct Spy {
    store: Arc<dyn Store>,
    state: Mutex<State>,
    called: Notify,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<Verb, usize>,
    faults: HashMap<Verb, Vec<Fault>>,
    is_away: bool,
    registered: Vec<WorkerId>,
}

impl Spy {
    /// Watches a store.
    pub fn on(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, state: Mutex::default(), called: Notify::new() })
    }

    /// The store below, undisturbed.
    pub fn below(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// How often a verb was called and answered, or a wait was begun.
    pub fn calls(&self, verb: Verb) -> usize {
        self.state().calls.get(&verb).copied().unwrap_or(0)
    }

    /// Waits until a verb was called and answered so often.
    pub async fn wait_for(&self, verb: Verb, times: usize) {
        let wait = async {
            loop {
                let called = self.called.notified();
                tokio::pin!(called);
                called.as_mut().enable();
                if self.calls(verb) >= times {
                    return;
                }
                called.await;
            }
        };
        soon(&format!("{verb:?} is called {times} times"), wait).await;
    }

    /// Loses the next request of a verb: it does not take effect.
    pub fn lose_request(&self, verb: Verb) {
        self.state().faults.entry(verb).or_default().push(Fault::Before);
    }

    /// Loses the next answer of a verb: it does take effect.
    pub fn lose_answer(&self, verb: Verb) {
        self.state().faults.entry(verb).or_default().push(Fault::After);
    }

    /// Never answers the next call of a verb, which is counted when it is made.
    pub fn swallow(&self, verb: Verb) {
        self.state().faults.entry(verb).or_default().push(Fault::Never);
    }

    /// The workers that have registered, once for each time.
    pub fn registered(&self) -> Vec<WorkerId> {
        self.state().registered.clone()
    }

    /// Takes the store away, or brings it back.
    pub fn set_away(&self, is_away: bool) {
        self.state().is_away = is_away;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unavailable(&self) -> Error {
        Error::StoreUnavailable {
            store: self.store.place().to_owned(),
            effect: Effect::Unknown,
            reason: "the test took it away".into(),
            source: None,
        }
    }

    /// `step` is asked for only if the request is not lost: a step may begin before anyone waits for it.
    async fn disturbed<'a, T>(
        &'a self,
        verb: Verb,
        step: impl FnOnce() -> Step<'a, T> + Send,
    ) -> flexiq::Result<T> {
        let fault = {
            let mut state = self.state();
            if state.is_away {
                Some(Fault::Before)
            } else {
                state.faults.get_mut(&verb).filter(|faults| !faults.is_empty()).map(|faults| faults.remove(0))
            }
        };
        let answer = match fault {
            Some(Fault::Before) => Err(self.unavailable()),
            Some(Fault::After) => step().await.and_then(|_| Err(self.unavailable())),
            Some(Fault::Never) => {
                self.count(verb);
                std::future::pending().await
            }
            None => step().await,
        };
        self.count(verb);
        answer
    }

    fn count(&self, verb: Verb) {
        *self.state().calls.entry(verb).or_default() += 1;
        self.called.notify_waiters();
    }
}

impl Store for Spy {
    fn place(&self) -> &str {
        self.store.place()
    }

    fn clock(&self) -> &Clock {
        self.store.clock()
    }

    fn enqueue(&self, batch: Enqueue) -> Step<'_, Vec<Enqueued>> {
        Box::pin(self.disturbed(Verb::Enqueue, || self.store.enqueue(batch)))
    }

    fn room(&self, queue: &Name, producer: ProducerId) -> Step<'_, ()> {
        self.count(Verb::Room);
        self.store.room(queue, producer)
    }

    fn leave_line(&self, queue: &Name, producer: ProducerId) {
        self.store.leave_line(queue, producer);
    }

    fn turn(&self, turn: Arc<Turn>) -> Step<'_, TurnAnswer> {
        Box::pin(self.disturbed(Verb::Turn, || self.store.turn(turn)))
    }

    fn extend(&self, beat: Beat) -> Step<'_, BeatAnswer> {
        Box::pin(self.disturbed(Verb::Extend, || self.store.extend(beat)))
    }

    fn tell(&self, tell: Tell) -> Step<'_, ()> {
        Box::pin(self.disturbed(Verb::Tell, || self.store.tell(tell)))
    }

    fn acquire(&self, ask: Ask) -> Step<'_, Asked> {
        Box::pin(self.disturbed(Verb::Acquire, || self.store.acquire(ask)))
    }

    fn give_back(&self, permits: Vec<GiveBack>) -> Step<'_, ()> {
        Box::pin(self.disturbed(Verb::GiveBack, || self.store.give_back(permits)))
    }

    fn wait(&self, wait: Wait) -> Step<'_, Wake> {
        Box::pin(async {
            self.count(Verb::Wait);
            self.store.wait(wait).await
        })
    }

    fn called(&self, worker: WorkerId) -> Step<'_, ()> {
        self.store.called(worker)
    }

    fn register(&self, hello: Hello) -> Step<'_, ()> {
        Box::pin(async {
            self.state().registered.push(hello.worker);
            let answer = self.store.register(hello).await;
            self.count(Verb::Register);
            answer
        })
    }

    fn retire(&self, worker: WorkerId) -> Step<'_, ()> {
        self.store.retire(worker)
    }

    fn declarations(&self) -> Step<'_, Vec<(Name, String)>> {
        self.store.declarations()
    }

    fn queues(&self) -> Step<'_, Vec<Name>> {
        self.store.queues()
    }

    fn job(&self, id: JobId) -> Step<'_, Option<Job>> {
        self.store.job(id)
    }

    fn story(&self, id: JobId) -> Step<'_, Option<Story>> {
        self.store.story(id)
    }

    fn payload(&self, id: JobId) -> Step<'_, Option<Payload>> {
        self.store.payload(id)
    }

    fn list(&self, filter: Filter) -> Step<'_, Page> {
        self.store.list(filter)
    }

    fn ended(&self, key: JobKey) -> Step<'_, Option<Stored>> {
        self.store.ended(key)
    }

    fn cancel(&self, id: JobId) -> Step<'_, Option<Cancelled>> {
        self.store.cancel(id)
    }

    fn cancel_partition(&self, task: Name, partition: String) -> Step<'_, Swept> {
        self.store.cancel_partition(task, partition)
    }

    fn retry(&self, id: JobId) -> Step<'_, Retried> {
        self.store.retry(id)
    }

    fn delete(&self, id: JobId) -> Step<'_, bool> {
        self.store.delete(id)
    }

    fn limit(&self, scope: Scope, change: Change) -> Step<'_, ()> {
        self.store.limit(scope, change)
    }

    fn limits(&self) -> Step<'_, Vec<Standing>> {
        self.store.limits()
    }

    fn schedule(&self, queue: Name, name: Name, planning: Planning) -> Step<'_, ()> {
        self.store.schedule(queue, name, planning)
    }

    fn schedules(&self) -> Step<'_, Vec<Standby>> {
        self.store.schedules()
    }

    fn tick(&self, tick: Tick) -> Step<'_, Ticked> {
        Box::pin(self.disturbed(Verb::Tick, || self.store.tick(tick)))
    }

    fn explain(&self, id: JobId) -> Step<'_, Option<Explanation>> {
        self.store.explain(id)
    }

    fn counts(&self) -> Step<'_, Counts> {
        self.store.counts()
    }

    fn stats(&self) -> Step<'_, Snapshot> {
        self.store.stats()
    }

    fn check(&self, repair: Repair) -> Step<'_, Vec<Finding>> {
        self.store.check(repair)
    }

    fn keep_sample(&self, after: Option<Timestamp>, text: String) -> Step<'_, bool> {
        self.store.keep_sample(after, text)
    }
}

impl fmt::Debug for Spy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spy").field(&self.store).finish()
    }
}
