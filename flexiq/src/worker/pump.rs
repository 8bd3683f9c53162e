//! The worker's one loop: all outcomes that have come in and one claim for all free room are one step of the store, the
//! turn. It repeats at once while there is something to do, and else waits for a bell or an outcome.
//!
//! The pump alone knows the room, and it alone starts runs and sends turns. It runs no task and renews no lease.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::coop;
use tokio_util::sync::CancellationToken;

use super::away::{Away, Tries};
use super::ending::{self, Ending};
use super::executor::{Ended, Executor};
use super::leash::{Leash, Order, Stage as Drain};
use super::meter::{Begun, Meter};
use super::plan::Plan;
use super::slots::{Offer, Part, Slots};
use super::stopping::{Stage, Stopping};
use super::stream::{Answered, Stream};
use super::tally::{Tally, Underway};
use super::ticks::Ticks;
use crate::job::Transition;
use crate::name::Name;
use crate::store::{Claim, Claimed, Finish, Finished, LeaseId, Room, Store, Wait, WorkerId};
use crate::task::Kind;

/// Between two looks whether other workers have finished, for a worker that runs until idle.
const IDLE_LOOK: Duration = Duration::from_millis(100);

/// A freed slot waits for so many passes of the runtime at most before it is refilled.
const MOST_PASSES: u32 = 4;

type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Interest = Vec<(Name, Arc<[Name]>)>;

/// When a worker ends.
#[derive(Debug)]
pub(super) struct Life {
    /// Stop claiming, and let runs end for the grace.
    pub(super) stop: CancellationToken,
    /// The grace is over at once.
    pub(super) hurry: CancellationToken,
    /// End also when nothing of the worker's tasks is ready, scheduled or running.
    pub(super) until_idle: bool,
    /// Claim only when a test lets it.
    pub(super) leash: Option<Leash>,
}

/// The worker's one loop.
pub(super) struct Pump {
    plan: Plan,
    store: Arc<dyn Store>,
    worker: WorkerId,
    executor: Executor,
    away: Arc<Away>,
    ended: UnboundedReceiver<Ended>,
    until_idle: bool,
    stop: Later<()>,
    hurry: Later<()>,
    slots: Slots,
    streams: Vec<Stream>,
    /// Where the next round of turns begins, so that no queue is always asked last.
    turn_of: usize,
    /// When the job that was claimed last would have started by weights alone.
    weighed: u64,
    runs: HashMap<LeaseId, Active>,
    /// What the answers of turns tell of schedules.
    ticks: Ticks,
    meter: Meter,
    tally: Tally,
    /// The tasks that the worker waits for, and the wait.
    waiting: Option<(Interest, Later<Vec<Name>>)>,
    /// Its tries, which outlast a wait that is given up: what it waits for may change often.
    tries: Arc<tokio::sync::Mutex<Tries>>,
    idle_look: Option<Later<bool>>,
    stopping: Option<Stopping>,
    /// Whether a body was started since the last turn.
    has_started: bool,
    leash: Option<Leash>,
}

/// A run that has not ended.
#[derive(Debug)]
struct Active {
    stream: usize,
    task: usize,
    ending: Ending,
    begun: Begun,
    underway: Underway,
    /// When it was started, by the monotonic clock.
    started: Duration,
}

enum Event {
    Stop,
    Hurry,
    Answered(usize, Answered),
    Ended(Ended),
    Woken(Vec<Name>),
    TimeOver,
    LookedIdle(bool),
    Ordered(Order),
}

impl Pump {
    pub(super) fn new(
        plan: Plan,
        (worker, tally): (WorkerId, Tally),
        executor: Executor,
        away: Arc<Away>,
        ended: UnboundedReceiver<Ended>,
        ticks: Ticks,
        life: Life,
    ) -> Self {
        let store = executor.queue.store().clone();
        let tasks = plan.tasks.iter().map(|task| task.definition);
        let slots = Slots::new(plan.slots, tasks.map(|task| (task.kind, task.max_in_flight_per_task)));
        let served = plan.queues.iter();
        let streams =
            served.map(|queue| Stream::new(queue.name.clone(), queue.tasks.clone(), queue.weight)).collect();
        Self {
            tries: Arc::new(Tries::of_wait(&away).into()),
            meter: Meter::new(&plan, store.clock()),
            tally,
            plan,
            store,
            worker,
            executor,
            away,
            ended,
            until_idle: life.until_idle,
            stop: Box::pin(life.stop.cancelled_owned()),
            hurry: Box::pin(life.hurry.cancelled_owned()),
            slots,
            streams,
            turn_of: 0,
            weighed: 0,
            runs: HashMap::new(),
            ticks,
            waiting: None,
            idle_look: None,
            stopping: None,
            has_started: false,
            leash: life.leash,
        }
    }

    /// Works until the worker is told to stop and has stopped. What it could not bring home is left in `self`.
    pub(super) async fn run(&mut self) {
        while !self.is_over() {
            self.send_turns();
            self.listen();
            let event = poll_fn(|poller| self.poll(poller)).await;
            self.take(event);
            if std::mem::take(&mut self.has_started) {
                self.let_short_bodies_end().await;
            }
            while let Ok(ended) = self.ended.try_recv() {
                self.end(ended);
            }
        }
    }

    /// Gives bodies that end at once the time to do so before the next turn, so that all go with it: half as many commits.
    ///
    /// Nobody waits for a clock here: it ends when none has ended while all that could run were polled.
    async fn let_short_bodies_end(&mut self) {
        for _ in 0..MOST_PASSES {
            tokio::task::yield_now().await;
            let running = self.runs.len();
            while let Ok(ended) = self.ended.try_recv() {
                self.end(ended);
            }
            if self.runs.is_empty() || self.runs.len() == running {
                return;
            }
        }
    }

    /// Whether runs or outcomes are left that were not brought to the store.
    pub(super) fn has_rest(&self) -> bool {
        !self.runs.is_empty() || !self.streams.iter().all(Stream::is_told)
    }

    /// Brings home what a shutdown left, however long it takes. Runs where the heartbeat runs.
    pub(super) async fn bring_home(mut self) {
        // Their timers belong to the runtime that they were sent from.
        for stream in &mut self.streams {
            stream.send_again(&self.store, &self.away);
        }
        while self.has_rest() {
            self.send_turns();
            let event = poll_fn(|poller| self.poll_work(poller)).await;
            self.take(event);
        }
    }

    /// Whether the worker was told to stop, and nothing that it waits for is left.
    fn is_over(&self) -> bool {
        let Some(stopping) = &self.stopping else { return false };
        let plain_only =
            || self.runs.values().all(|run| self.plan.tasks[run.task].definition.kind == Kind::Plain);
        match stopping.stage() {
            Stage::Over => true,
            Stage::LastTurn => plain_only() && self.streams.iter().all(Stream::is_told),
            Stage::Grace | Stage::LastMoment => !self.has_rest(),
        }
    }

    /// Sends a turn for each queue that has something to tell or to ask.
    fn send_turns(&mut self) {
        let due = self.due();
        let mut wanting: u32 = due.iter().map(|&index| self.streams[index].weight).sum();
        for &index in &due {
            let part = Part { weight: self.streams[index].weight, of: wanting };
            wanting -= part.weight;
            let offer = if self.may_start() { self.offer(index, part) } else { None };
            if offer.is_none() && self.streams[index].finishes.is_empty() {
                continue;
            }
            let claim = offer.map(|offer| {
                // Whoever was offered room last is asked last, where weights say no more.
                self.turn_of = (index + 1) % self.streams.len();
                let claim = self.claim(&offer);
                (offer, claim)
            });
            self.streams[index].send(self.worker, claim, &self.store, &self.away);
        }
    }

    /// The queues that have something to tell or to ask, in the order in which they are asked.
    fn due(&self) -> Vec<usize> {
        let count = self.streams.len();
        if self.plan.is_strict {
            return (0..count).filter(|&index| self.streams[index].is_due()).collect();
        }
        let in_turn = (self.turn_of..self.turn_of + count).map(|index| index % count);
        let mut due: Vec<usize> = in_turn.filter(|&index| self.streams[index].is_due()).collect();
        // A bell that was popped goes before all others: nobody else has it.
        due.sort_by_key(|&index| {
            let stream = &self.streams[index];
            (!stream.is_woken, if stream.has_more { stream.next } else { stream.next.max(self.weighed) })
        });
        due
    }

    /// Room for a claim of one queue.
    fn offer(&mut self, index: usize, part: Part) -> Option<Offer> {
        if !self.plan.is_strict {
            return self.slots.offer(&self.streams[index].tasks, part, [false; 2]);
        }
        // What a queue before it may still fill is none of its business.
        let before = self.streams[..index].iter().map(Stream::offered);
        let kept = before.fold([false; 2], |kept, offered| [kept[0] || offered[0], kept[1] || offered[1]]);
        let offer = self.slots.offer(&self.streams[index].tasks, Part::ALL, kept);
        // A bell that was popped and cannot be used goes back with an empty claim.
        offer.or_else(|| self.streams[index].is_woken.then(Offer::default))
    }

    /// Jobs of a queue have been claimed: by its weight, others are next (start-time fair queueing, Goyal, Vin and Cheng,
    /// SIGCOMM 1996).
    fn weigh(&mut self, index: usize, jobs: usize, has_more: bool) {
        const JOB: u64 = 1_000_000;
        let stream = &mut self.streams[index];
        // What it did not want before, it has not saved up.
        if !std::mem::replace(&mut stream.has_more, has_more) {
            stream.next = stream.next.max(self.weighed);
        }
        if jobs > 0 {
            self.weighed = stream.next;
            stream.next += jobs as u64 * JOB / u64::from(stream.weight);
        }
    }

    fn claim(&self, offer: &Offer) -> Claim {
        let room = |&(task, at_most): &(usize, u32)| {
            let served = &self.plan.tasks[task];
            Room {
                task: served.name.clone(),
                slot: super::slots::slot_of(served.definition.kind),
                at_most,
                max_losses: served.definition.budgets.max_losses,
            }
        };
        Claim {
            slots: offer.slots.to_vec(),
            tasks: offer.tasks.iter().map(room).collect(),
            lease: self.plan.lease,
        }
    }

    /// Whether jobs may be claimed and started.
    fn may_start(&self) -> bool {
        self.stopping.is_none() && self.leash.as_ref().is_none_or(Leash::is_off)
    }

    /// Waits on the bells of all that could start now and is not being asked for already.
    fn listen(&mut self) {
        if !self.may_start() {
            self.waiting = None;
            self.idle_look = None;
            return;
        }
        let interest = self.interest();
        if interest.is_empty() {
            self.waiting = None;
        } else if self.waiting.as_ref().is_none_or(|(before, _)| *before != interest) {
            self.waiting = Some((interest.clone(), self.wait(interest)));
        }
        if self.until_idle && self.idle_look.is_none() && self.is_quiet() {
            self.idle_look = Some(self.look_idle());
        }
    }

    fn interest(&mut self) -> Interest {
        let mut interest = Vec::new();
        for stream in self.streams.iter_mut().filter(|stream| !stream.is_busy() && !stream.is_hungry) {
            let open = stream.tasks.iter().filter(|&&task| self.slots.has_room(task));
            let names: Arc<[Name]> = open.map(|&task| self.plan.tasks[task].name.clone()).collect();
            stream.is_unheard = names.len() < stream.tasks.len();
            if !names.is_empty() {
                interest.push((stream.queue.clone(), names));
            }
        }
        interest
    }

    fn wait(&self, interest: Interest) -> Later<Vec<Name>> {
        let (store, tries, worker) = (self.store.clone(), self.tries.clone(), self.worker);
        Box::pin(async move {
            let mut tries = tries.lock().await;
            tries.ready(store.clock()).await;
            let queues: Vec<_> = interest.iter().map(|(queue, _)| queue.clone()).collect();
            match store.wait(Wait { worker, queues: interest }).await {
                Ok(wake) => {
                    tries.answered();
                    wake.queues
                }
                Err(error) => {
                    tries.failed(&error, store.clock());
                    tries.ready(store.clock()).await;
                    // What was rung meanwhile is not known: claim before waiting again.
                    queues
                }
            }
        })
    }

    /// Whether this worker has nothing to do at this moment.
    fn is_quiet(&self) -> bool {
        !self.has_rest() && self.streams.iter().all(|stream| !stream.is_hungry)
    }

    /// Asks the store whether anything of the worker's tasks is pending or running, here or elsewhere.
    fn look_idle(&self) -> Later<bool> {
        let store = self.store.clone();
        let served: Vec<(Name, Name)> = self
            .streams
            .iter()
            .flat_map(|stream| {
                stream.tasks.iter().map(|&task| (stream.queue.clone(), self.plan.tasks[task].name.clone()))
            })
            .collect();
        Box::pin(async move {
            let is_served = |queue: &str, task: &str| {
                served.iter().any(|(q, t)| q.as_str() == queue && t.as_str() == task)
            };
            match store.counts().await {
                Ok(counts) => {
                    let mut ours =
                        counts.tasks.iter().filter(|counts| is_served(&counts.queue, &counts.task));
                    if ours.all(|counts| counts.pending() + counts.running == 0) {
                        return true;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot see whether the store is idle");
                    store.clock().sleep(IDLE_LOOK * 9).await;
                }
            }
            store.clock().sleep(IDLE_LOOK).await;
            false
        })
    }

    fn take(&mut self, event: Event) {
        // What was seen before something happened says nothing.
        self.idle_look = None;
        match event {
            Event::Stop => self.begin_stopping(),
            Event::LookedIdle(true) if self.is_quiet() => self.begin_stopping(),
            Event::LookedIdle(_) => {}
            Event::Hurry | Event::TimeOver => self.go_on_stopping(),
            Event::Answered(index, answered) => self.take_answer(index, answered),
            Event::Ended(ended) => self.end(ended),
            Event::Woken(queues) => {
                for stream in self.streams.iter_mut().filter(|stream| queues.contains(&stream.queue)) {
                    stream.is_hungry = true;
                    stream.is_woken = true;
                }
            }
            Event::Ordered(order) => {
                self.leash.iter_mut().for_each(|leash| leash.obey(order));
                // What lies there was rung for when nobody listened, or is due since.
                self.streams.iter_mut().for_each(|stream| stream.is_hungry = true);
            }
        }
    }

    fn begin_stopping(&mut self) {
        if self.stopping.is_none() {
            tracing::info!(worker = %self.worker, running = self.runs.len(), "the worker stops");
            self.stopping = Some(Stopping::new(self.store.clock(), self.plan.grace));
        }
    }

    fn go_on_stopping(&mut self) {
        let Some(stopping) = &mut self.stopping else { return };
        match stopping.advance() {
            Stage::LastMoment => self.executor.leases.shut_down(),
            Stage::Over => {
                tracing::warn!("the store did not hear of the worker's last outcomes: leases lapse")
            }
            Stage::Grace | Stage::LastTurn => {}
        }
    }

    fn take_answer(&mut self, index: usize, answered: Answered) {
        let Answered { turn, offer, sent, answer } = answered;
        for (finish, finished) in turn.finishes.iter().zip(&answer.finished) {
            self.executor.leases.remove(finish.lease);
            if *finished == Finished::LeaseLost {
                tracing::debug!(job.id = %finish.lease.job, job.run = finish.lease.run, "the lease was lost");
            }
        }
        self.ticks.told(answer.ticks);
        let Some(offer) = offer else { return };
        self.slots.take_back(&offer);
        // Measured from before it was sent: these leases may be near their end.
        let is_late = self.store.clock().elapsed().saturating_sub(sent) > self.plan.lease / 2;
        let is_spent = self.is_spent(&offer, &answer.claimed);
        let has_more = answer.more || is_spent;
        self.weigh(index, answer.claimed.len(), has_more);
        self.streams[index].is_hungry |= has_more;
        for claimed in answer.claimed {
            match self.plan.task(&claimed.task) {
                Some(task) if !is_late && self.may_start() => self.start(index, task, claimed, sent),
                _ => self.put_back(index, &claimed),
            }
        }
    }

    /// Whether a claim filled some room that it was offered, so that there may be more for it.
    fn is_spent(&self, offer: &Offer, claimed: &[Claimed]) -> bool {
        if claimed.is_empty() {
            return false;
        }
        let mut slots = [0; 2];
        let mut tasks: HashMap<usize, u32> = HashMap::new();
        for task in claimed.iter().filter_map(|claimed| self.plan.task(&claimed.task)) {
            slots[super::slots::slot_of(self.plan.tasks[task].definition.kind)] += 1;
            *tasks.entry(task).or_default() += 1;
        }
        let is_slot_full =
            slots.iter().zip(&offer.slots).any(|(filled, offered)| filled > &0 && filled >= offered);
        is_slot_full
            || offer.tasks.iter().any(|(task, most)| tasks.get(task).is_some_and(|filled| filled >= most))
    }

    fn start(&mut self, index: usize, task: usize, claimed: Claimed, sent: Duration) {
        let lease = claimed.lease;
        let started = self.store.clock().elapsed();
        let begun = self.meter.started(task, &claimed);
        let underway = self.tally.started((index, task), &claimed, started);
        let ending =
            self.executor.start(claimed, sent, &self.streams[index].queue, self.plan.tasks[task].definition);
        self.slots.fill(task);
        self.has_started = true;
        self.runs.insert(lease, Active { stream: index, task, ending, begun, underway, started });
    }

    /// Releases a claimed job without starting it.
    fn put_back(&mut self, index: usize, claimed: &Claimed) {
        let finish = Finish::new(claimed.lease, Transition::Release);
        self.streams[index].finishes.push(finish);
    }

    fn end(&mut self, ended: Ended) {
        let Some(run) = self.runs.remove(&ended.lease) else { return };
        self.slots.free(run.task);
        self.meter.ended(run.task, run.begun, &ended.outcome);
        let is_lost = self.executor.leases.end(ended.lease);
        self.tally.ended(run.underway, &ended.outcome, is_lost, self.store.clock().elapsed());
        self.executor.permits.end(ended.lease);
        let notes = self.executor.notes.end(ended.lease);
        let now = self.store.clock().now();
        let judged = run.ending.judge(ended.lease, ended.outcome, now);
        let finish = Finish { notes, ..judged };
        let task = &self.plan.tasks[run.task].name;
        ending::tell(task, &finish);
        if let Some(leash) = &self.leash {
            leash.ran(task, &finish, now);
        }
        self.streams[run.stream].finishes.push(finish);
    }

    fn poll(&mut self, poller: &mut Poller<'_>) -> Poll<Event> {
        match &self.stopping {
            None if self.stop.as_mut().poll(poller).is_ready() => return Poll::Ready(Event::Stop),
            Some(stopping)
                if stopping.stage() == Stage::Grace && self.hurry.as_mut().poll(poller).is_ready() =>
            {
                return Poll::Ready(Event::Hurry);
            }
            _ => {}
        }
        if let Poll::Ready(event) = self.poll_work(poller) {
            return Poll::Ready(event);
        }
        // Before the bells are heard: what comes back rings first.
        let is_settled =
            self.leash.as_mut().is_none_or(|leash| leash.is_settled(&self.executor.permits, poller));
        if let Some((_, wait)) = &mut self.waiting
            && let Poll::Ready(queues) = wait.as_mut().poll(poller)
        {
            self.waiting = None;
            return Poll::Ready(Event::Woken(queues));
        }
        if let Some(stopping) = &mut self.stopping
            && stopping.poll(poller).is_ready()
        {
            return Poll::Ready(Event::TimeOver);
        }
        if let Some(look) = &mut self.idle_look
            && let Poll::Ready(is_idle) = look.as_mut().poll(poller)
        {
            return Poll::Ready(Event::LookedIdle(is_idle));
        }
        self.poll_leash(is_settled, poller).map(Event::Ordered)
    }

    /// Takes an order, or tells how far the worker has come, now that nothing else has come in.
    fn poll_leash(&mut self, is_settled: bool, poller: &mut Poller<'_>) -> Poll<Order> {
        let Some(leash) = &mut self.leash else { return Poll::Pending };
        if let Poll::Ready(order) = leash.poll(poller) {
            return Poll::Ready(order);
        }
        if !coop::has_budget_remaining() {
            // What was asked may have kept its answer back, to let others run.
            poller.waker().wake_by_ref();
            return Poll::Pending;
        }
        let timeouts = self.runs.values().filter_map(|run| Some(run.started + run.ending.timeout()?));
        let stage = if self.streams.iter().any(Stream::is_busy) {
            Some(Drain::Busy)
        } else if !self.runs.is_empty() {
            Some(Drain::Bodies { timeout: timeouts.min() })
        } else if !is_settled {
            Some(Drain::Busy)
        } else {
            None
        };
        leash.tell(stage);
        Poll::Pending
    }

    /// Polls what also goes on after the shutdown: turns and outcomes.
    fn poll_work(&mut self, poller: &mut Poller<'_>) -> Poll<Event> {
        for (index, stream) in self.streams.iter_mut().enumerate() {
            if let Poll::Ready(answered) = stream.poll(poller) {
                return Poll::Ready(Event::Answered(index, answered));
            }
        }
        match self.ended.poll_recv(poller) {
            Poll::Ready(Some(ended)) => Poll::Ready(Event::Ended(ended)),
            // The executor holds a sender, and lives in `self`.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl fmt::Debug for Pump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pump")
            .field("worker", &self.worker)
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}
