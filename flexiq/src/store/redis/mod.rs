//! The store for a fleet: one Redis or Valkey.
//!
//! Each verb is a script, so that it is one step of the server; `lua/` has one file for each, and `keys.rs` tells what
//! lies where. Bells are messages of the server: a script that makes something startable picks the worker that waits
//! longest, and tells it.

mod check;
mod codes;
mod connection;
mod copies;
mod enqueue;
mod explain;
mod extend;
mod failure;
mod fleet;
mod hub;
mod keys;
mod leased;
mod line;
mod link;
mod list;
mod open;
mod options;
mod permits;
mod read;
mod room;
mod schedules;
mod scripts;
mod stats;
mod story;
#[cfg(feature = "tls")]
mod tls;
mod turn;
mod wait;
mod wire;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::sync::watch;
use uuid::Uuid;

pub use options::RedisOptions;

use self::hub::Hub;
use self::leased::Leased;
use self::line::Line;
use self::link::Link;
use self::permits::InUse;
use self::scripts::Script;
use self::wire::Parts;
use super::{
    Ask, Asked, Beat, BeatAnswer, Cancelled, Change, Counts, Enqueue, Enqueued, Explanation, Filter, Finding,
    GiveBack, Hello, JobKey, Page, Payload, Planning, ProducerId, Repair, Retried, Scope, Snapshot, Standby,
    Standing, Step, Store, Stored, Swept, Tell, Tick, Ticked, Turn, TurnAnswer, Wait, Wake, WorkerId,
};
use crate::clock::{Clock, Timestamp};
use crate::error::Result;
use crate::job::{Job, JobId, Story};
use crate::name::Name;

/// A store on one Redis.
pub struct RedisStore {
    shared: Arc<Shared>,
}

/// What a handle's calls share.
struct Shared {
    link: Link,
    hub: Hub,
    leased: Leased,
    line: Line,
    named: InUse,
    clock: Clock,
    prefix: Name,
    /// This handle, for messages.
    handle: [u8; 16],
    waits: AtomicU64,
    /// Lines that are being left in the background.
    leaving: watch::Sender<usize>,
}

impl RedisStore {
    /// Connects, and makes sure of the server.
    ///
    /// # Errors
    ///
    /// [`Error::StoreUnavailable`](crate::Error::StoreUnavailable) if nobody answers;
    /// [`Error::StoreRefused`](crate::Error::StoreRefused) if the server is too old, a replica, or may evict jobs.
    pub async fn open(options: RedisOptions) -> Result<Arc<Self>> {
        let handle = Uuid::now_v7().into_bytes();
        let own = [options.prefix.as_bytes(), b":", &handle].concat();
        let called = format!("{}:called", options.prefix).into_bytes();
        let late: Arc<OnceLock<Weak<Shared>>> = Arc::default();
        let told = {
            let late = late.clone();
            move |push| {
                if let Some(shared) = late.get().and_then(Weak::upgrade)
                    && let Some(stray) = shared.hub.told(&push, &shared.clock)
                {
                    wait::leave(&shared, stray);
                }
            }
        };
        let absent = options.absent;
        let shared = Arc::new(Shared {
            link: Link::new(&options, vec![own, called], Arc::new(told))?,
            hub: Hub::default(),
            leased: Leased::default(),
            line: Line::default(),
            named: InUse::default(),
            clock: options.clock,
            prefix: options.prefix,
            handle,
            waits: AtomicU64::new(1),
            leaving: watch::Sender::default(),
        });
        // Before the first call, with which the link connects.
        late.get_or_init(|| Arc::downgrade(&shared));
        open::open(&shared, absent).await?;
        Ok(Arc::new(Self { shared }))
    }

    /// Waits until this handle has taken in what the server has told it, and has left the lines that it was to leave;
    /// answers whether there were any, for that tells others. For tests, which look only when nothing is on its way.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub async fn catch_up(&self) -> Result<bool> {
        // The answer comes after all messages that were sent before it.
        self.shared.call(&redis::cmd("PING")).await?;
        let mut leaving = self.shared.leaving.subscribe();
        let has_to_leave = *leaving.borrow_and_update() > 0;
        let _ = leaving.wait_for(|lines| *lines == 0).await;
        Ok(has_to_leave)
    }
}

impl Shared {
    fn place(&self) -> &str {
        &self.link.place
    }

    /// How long a call may take.
    fn timeout(&self) -> Duration {
        self.link.timeout
    }

    fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The store's moment, where a test moves it; else the server tells its own.
    fn now(&self) -> Vec<u8> {
        self.clock.manual_now().map(|now| now.as_millis().to_string().into_bytes()).unwrap_or_default()
    }

    /// Runs a script of a queue.
    async fn run(&self, script: &Script, queue: &Name, args: Vec<Vec<u8>>) -> Result<Value> {
        self.run_within(self.timeout(), script, queue, args).await
    }

    /// Runs a script of a queue whose answer is of no use after this time.
    async fn run_within(
        &self,
        within: Duration,
        script: &Script,
        queue: &Name,
        args: Vec<Vec<u8>>,
    ) -> Result<Value> {
        let mut all = vec![self.now(), self.prefix.as_bytes().to_vec(), queue.as_bytes().to_vec()];
        all.extend(args);
        self.link.run(script, &keys::of_queue(&self.prefix, queue), &all, within).await
    }

    /// Runs a script of the whole store.
    async fn run_fleet(&self, script: &Script, args: Vec<Vec<u8>>) -> Result<Value> {
        self.run_fleet_within(self.timeout(), script, args).await
    }

    /// Runs a script of the whole store whose answer is of no use after this time.
    async fn run_fleet_within(&self, within: Duration, script: &Script, args: Vec<Vec<u8>>) -> Result<Value> {
        let mut all = vec![self.now()];
        all.extend(args);
        self.link.run(script, &keys::of_fleet(&self.prefix), &all, within).await
    }

    async fn call(&self, command: &Cmd) -> Result<Value> {
        self.link.call(command).await
    }

    fn spawn(&self, step: impl Future<Output = ()> + Send + 'static) {
        self.link.spawn(step);
    }

    fn next_wait(&self) -> u64 {
        self.waits.fetch_add(1, Ordering::Relaxed)
    }

    /// The queues that are known, sorted.
    async fn queues(&self) -> Result<Vec<Name>> {
        let key = keys::one_of_fleet(&self.prefix, "queues");
        let answer = self.call(redis::cmd("SMEMBERS").arg(key)).await?;
        let mut parts = Parts::of(answer, self.place());
        let mut queues = Vec::new();
        while !parts.is_empty() {
            queues.push(Name::new("queue", parts.text()?)?);
        }
        queues.sort();
        Ok(queues)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("place", &self.shared.place()).finish_non_exhaustive()
    }
}

impl Store for RedisStore {
    fn place(&self) -> &str {
        self.shared.place()
    }

    fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    fn enqueue(&self, batch: Enqueue) -> Step<'_, Vec<Enqueued>> {
        Box::pin(enqueue::enqueue(&self.shared, batch))
    }

    fn room(&self, _queue: &Name, producer: ProducerId) -> Step<'_, ()> {
        Box::pin(async move {
            room::room(&self.shared, producer).await;
            Ok(())
        })
    }

    fn leave_line(&self, queue: &Name, producer: ProducerId) {
        room::leave_line(&self.shared, queue, producer);
    }

    fn turn(&self, turn: Arc<Turn>) -> Step<'_, TurnAnswer> {
        Box::pin(turn::turn(&self.shared, turn))
    }

    fn extend(&self, beat: Beat) -> Step<'_, BeatAnswer> {
        Box::pin(extend::extend(&self.shared, beat))
    }

    fn tell(&self, tell: Tell) -> Step<'_, ()> {
        Box::pin(story::tell(&self.shared, tell))
    }

    fn acquire(&self, ask: Ask) -> Step<'_, Asked> {
        Box::pin(permits::acquire(&self.shared, ask))
    }

    fn give_back(&self, permits: Vec<GiveBack>) -> Step<'_, ()> {
        Box::pin(permits::give_back(&self.shared, permits))
    }

    fn wait(&self, wait: Wait) -> Step<'_, Wake> {
        Box::pin(wait::wait(self.shared.clone(), wait))
    }

    fn called(&self, worker: WorkerId) -> Step<'_, ()> {
        Box::pin(wait::called(&self.shared, worker))
    }

    fn register(&self, hello: Hello) -> Step<'_, ()> {
        Box::pin(fleet::register(&self.shared, hello))
    }

    fn retire(&self, worker: WorkerId) -> Step<'_, ()> {
        self.shared.hub.forget(worker);
        Box::pin(fleet::retire(&self.shared, worker))
    }

    fn declarations(&self) -> Step<'_, Vec<(Name, String)>> {
        Box::pin(fleet::declarations(&self.shared))
    }

    fn queues(&self) -> Step<'_, Vec<Name>> {
        Box::pin(self.shared.queues())
    }

    fn job(&self, id: JobId) -> Step<'_, Option<Job>> {
        Box::pin(read::job(&self.shared, id))
    }

    fn story(&self, id: JobId) -> Step<'_, Option<Story>> {
        Box::pin(story::story(&self.shared, id))
    }

    fn payload(&self, id: JobId) -> Step<'_, Option<Payload>> {
        Box::pin(read::payload(&self.shared, id))
    }

    fn list(&self, filter: Filter) -> Step<'_, Page> {
        Box::pin(list::list(&self.shared, filter))
    }

    fn ended(&self, key: JobKey) -> Step<'_, Option<Stored>> {
        Box::pin(wait::ended(&self.shared, key))
    }

    fn cancel(&self, id: JobId) -> Step<'_, Option<Cancelled>> {
        Box::pin(read::cancel(&self.shared, id))
    }

    fn cancel_partition(&self, task: Name, partition: String) -> Step<'_, Swept> {
        Box::pin(async move { read::cancel_partition(&self.shared, &task, &partition).await })
    }

    fn retry(&self, id: JobId) -> Step<'_, Retried> {
        Box::pin(read::retry(&self.shared, id))
    }

    fn delete(&self, id: JobId) -> Step<'_, bool> {
        Box::pin(read::delete(&self.shared, id))
    }

    fn limit(&self, scope: Scope, change: Change) -> Step<'_, ()> {
        Box::pin(fleet::limit(&self.shared, scope, change))
    }

    fn limits(&self) -> Step<'_, Vec<Standing>> {
        Box::pin(fleet::limits(&self.shared))
    }

    fn schedule(&self, queue: Name, name: Name, planning: Planning) -> Step<'_, ()> {
        Box::pin(schedules::schedule(&self.shared, queue, name, planning))
    }

    fn schedules(&self) -> Step<'_, Vec<Standby>> {
        Box::pin(schedules::schedules(&self.shared))
    }

    fn tick(&self, tick: Tick) -> Step<'_, Ticked> {
        Box::pin(schedules::tick(&self.shared, tick))
    }

    fn explain(&self, id: JobId) -> Step<'_, Option<Explanation>> {
        Box::pin(explain::explain(&self.shared, id))
    }

    fn counts(&self) -> Step<'_, Counts> {
        Box::pin(read::counts(&self.shared))
    }

    fn stats(&self) -> Step<'_, Snapshot> {
        Box::pin(stats::stats(&self.shared))
    }

    fn check(&self, repair: Repair) -> Step<'_, Vec<Finding>> {
        Box::pin(check::check(&self.shared, repair))
    }

    fn keep_sample(&self, after: Option<Timestamp>, text: String) -> Step<'_, bool> {
        Box::pin(stats::keep_sample(&self.shared, after, text))
    }
}
