//! The reference model of a store: plain maps, sorted on demand, and the manual clock's now. It is written to be
//! obviously right, and slow.
//!
//! Histories compare the real stores with it, and the conformance suite holds it to the same rules. Decisions that are
//! policy (budgets, rates) are flexiq's own; the bookkeeping is the model's.

mod claim;
mod enqueue;
mod explain;
mod extend;
mod finish;
mod gates;
mod guard;
mod hand;
mod house;
mod line;
mod list;
mod manner;
mod meter;
mod permits;
mod prune;
mod read;
mod record;
mod room;
mod schedules;
mod stats;
mod story;
mod turn;
mod turns;
mod unique;
mod wait;
mod workers;
mod world;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use flexiq::internals::{
    Ask, Asked, Beat, BeatAnswer, Cancelled, Change, Clock, Counts, Enqueue, Enqueued, Explanation, Filter,
    Finding, GiveBack, Hello, JobKey, Name, Page, Payload, Planning, ProducerId, Repair, Retried, Scope,
    Snapshot, Standby, Standing, Step, Store, Stored, Swept, Tell, Tick, Ticked, Timestamp, Turn, TurnAnswer,
    Wait, Wake, WorkerId,
};
use flexiq::{Job, JobId, Result, Story};
use tokio::sync::Notify;

pub use self::manner::Manner;

use self::world::World;

/// A store in plain maps.
pub struct ModelStore {
    clock: Clock,
    world: Mutex<World>,
    /// Something has changed: everyone who waits looks again.
    changed: Notify,
}

impl ModelStore {
    /// An empty store whose moments are this clock's.
    pub fn new(clock: Clock) -> Arc<Self> {
        Self::like(Manner::default(), clock)
    }

    /// An empty store that is free as another is.
    pub fn like(manner: Manner, clock: Clock) -> Arc<Self> {
        let world = Mutex::new(World { manner, ..World::default() });
        Arc::new(Self { clock, world, changed: Notify::new() })
    }

    /// Does something to the world at one moment.
    fn look<T>(&self, verb: impl FnOnce(&mut World, Timestamp) -> T) -> T {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        verb(&mut world, self.clock.now())
    }

    /// A verb that may change something. It is done when it is called, as a request is sent when it is called.
    fn step<T: Send + 'static>(&self, verb: impl FnOnce(&mut World, Timestamp) -> Result<T>) -> Step<'_, T> {
        let answer = self.look(|world, now| {
            let answer = verb(world, now);
            turns::settle(world);
            unique::settle(world, now);
            schedules::settle(world, now);
            answer
        });
        self.changed.notify_waiters();
        Box::pin(std::future::ready(answer))
    }

    /// A question.
    fn read<T: Send + 'static>(&self, question: impl FnOnce(&World) -> T) -> Step<'_, T> {
        Box::pin(std::future::ready(Ok(self.look(|world, _| question(world)))))
    }
}

impl fmt::Debug for ModelStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelStore")
    }
}

impl Store for ModelStore {
    fn place(&self) -> &str {
        "model:"
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn enqueue(&self, batch: Enqueue) -> Step<'_, Vec<Enqueued>> {
        self.step(|world, now| enqueue::enqueue(world, now, batch))
    }

    fn room(&self, queue: &Name, producer: ProducerId) -> Step<'_, ()> {
        let queue = queue.clone();
        Box::pin(async move {
            room::room(self, &queue, producer).await;
            Ok(())
        })
    }

    fn leave_line(&self, _queue: &Name, producer: ProducerId) {
        drop(self.step(|world, _| {
            room::leave(world, producer);
            Ok(())
        }));
    }

    fn turn(&self, turn: Arc<Turn>) -> Step<'_, TurnAnswer> {
        self.step(|world, now| Ok(turn::turn(world, now, &turn)))
    }

    fn extend(&self, beat: Beat) -> Step<'_, BeatAnswer> {
        self.step(|world, now| Ok(extend::extend(world, now, &beat)))
    }

    fn tell(&self, tell: Tell) -> Step<'_, ()> {
        self.step(|world, _| {
            story::tell(world, &tell);
            Ok(())
        })
    }

    fn acquire(&self, ask: Ask) -> Step<'_, Asked> {
        self.step(|world, now| Ok(permits::acquire(world, now, &ask)))
    }

    fn give_back(&self, permits: Vec<GiveBack>) -> Step<'_, ()> {
        self.step(|world, now| {
            permits::give_back(world, now, &permits);
            Ok(())
        })
    }

    fn wait(&self, wait: Wait) -> Step<'_, Wake> {
        Box::pin(async move { Ok(wait::wait(self, &wait).await) })
    }

    fn called(&self, worker: WorkerId) -> Step<'_, ()> {
        Box::pin(async move {
            self.until(|world, _| wait::is_called(world, worker).then_some(())).await;
            Ok(())
        })
    }

    fn register(&self, hello: Hello) -> Step<'_, ()> {
        self.step(|world, now| {
            workers::register(world, now, hello);
            Ok(())
        })
    }

    fn retire(&self, worker: WorkerId) -> Step<'_, ()> {
        self.step(|world, now| {
            workers::retire(world, now, worker);
            Ok(())
        })
    }

    fn declarations(&self) -> Step<'_, Vec<(Name, String)>> {
        self.read(|world| world.declarations.clone().into_iter().collect())
    }

    fn queues(&self) -> Step<'_, Vec<Name>> {
        self.read(|world| world.queues.iter().cloned().collect())
    }

    fn job(&self, id: JobId) -> Step<'_, Option<Job>> {
        self.read(|world| world.jobs.get(&id).map(read::show))
    }

    fn story(&self, id: JobId) -> Step<'_, Option<Story>> {
        self.read(|world| world.jobs.get(&id).map(|record| record.chronicle.show()))
    }

    fn payload(&self, id: JobId) -> Step<'_, Option<Payload>> {
        self.read(|world| world.jobs.get(&id).map(|record| record.payload.clone()))
    }

    fn list(&self, filter: Filter) -> Step<'_, Page> {
        self.read(|world| list::list(world, &filter))
    }

    fn ended(&self, key: JobKey) -> Step<'_, Option<Stored>> {
        Box::pin(async move { Ok(self.until(|world, _| wait::end_of(world, &key)).await) })
    }

    fn cancel(&self, id: JobId) -> Step<'_, Option<Cancelled>> {
        self.step(|world, now| Ok(hand::cancel(world, now, id)))
    }

    fn cancel_partition(&self, task: Name, partition: String) -> Step<'_, Swept> {
        self.step(move |world, now| Ok(hand::cancel_partition(world, now, &task, &partition)))
    }

    fn retry(&self, id: JobId) -> Step<'_, Retried> {
        self.step(|world, now| Ok(hand::retry(world, now, id)))
    }

    fn delete(&self, id: JobId) -> Step<'_, bool> {
        self.step(|world, _| Ok(hand::delete(world, id)))
    }

    fn limit(&self, scope: Scope, change: Change) -> Step<'_, ()> {
        self.step(|world, now| {
            world.gates.change(scope, change);
            workers::publish(world, now);
            Ok(())
        })
    }

    fn limits(&self) -> Step<'_, Vec<Standing>> {
        self.read(gates::limits)
    }

    fn schedule(&self, queue: Name, name: Name, planning: Planning) -> Step<'_, ()> {
        self.step(|world, now| schedules::schedule(world, now, &queue, &name, planning))
    }

    fn schedules(&self) -> Step<'_, Vec<Standby>> {
        self.read(schedules::all)
    }

    fn tick(&self, tick: Tick) -> Step<'_, Ticked> {
        self.step(|world, now| schedules::tick(world, now, tick))
    }

    fn explain(&self, id: JobId) -> Step<'_, Option<Explanation>> {
        Box::pin(std::future::ready(Ok(self.look(|world, now| explain::explain(world, now, id)))))
    }

    fn counts(&self) -> Step<'_, Counts> {
        self.read(read::counts)
    }

    fn stats(&self) -> Step<'_, Snapshot> {
        Box::pin(std::future::ready(Ok(self.look(|world, now| stats::stats(world, now)))))
    }

    fn check(&self, _repair: Repair) -> Step<'_, Vec<Finding>> {
        // Each job is kept once, and everything else is counted when it is asked for.
        self.read(|_| Vec::new())
    }

    fn keep_sample(&self, after: Option<Timestamp>, text: String) -> Step<'_, bool> {
        self.step(|world, now| Ok(stats::keep_sample(world, now, after, text)))
    }
}
