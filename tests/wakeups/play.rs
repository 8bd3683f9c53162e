//! Plays a history, lets everything settle, and then asks each sleeper whether it could have started something.

use std::collections::BTreeMap;
use std::sync::Arc;

use flexiq::internals::{
    Beat, Change, Claim, Claimed, Declared, Due, Enqueue, Filter, Finish, Held, Hello, Hold, Lapse, Limits,
    NewJob, Outset, Payload, Rate, Repair, ScheduledReason, Scope, Timestamp, Transition, Turn, Value,
    WorkerId,
};
use flexiq::{JobId, State};
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;

use crate::schedules::Told;
use crate::stand::Stand;
use crate::steps::{BEAT, History, How, LEASE, QUEUES, Step, TASKS, Trade, name, secs};
use crate::worker::{Run, Worker};

pub(crate) type Played<T = ()> = Result<T, TestCaseError>;

/// So many workers at once.
const MOST_WORKERS: usize = 4;

/// Until all sleep, so many wake up at most,
const MOST_WAKES: u64 = 100;
/// and so many of them in vain, beside one for each step since all slept before. A keeper that does not link what has
/// become due is woken in vain.
const MOST_VAIN: u64 = 2;

/// What many histories cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) wakes: u64,
    /// Wake-ups whose claim got nothing.
    pub(crate) vain: u64,
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            steps: self.steps + other.steps,
            wakes: self.wakes + other.wakes,
            vain: self.vain + other.vain,
        }
    }
}

/// A history under way.
pub(crate) struct Play {
    pub(crate) stand: Stand,
    pub(crate) workers: Vec<Worker>,
    born: u8,
    jobs: Vec<JobId>,
    pub(crate) partitions: BTreeMap<JobId, &'static str>,
    /// By queue and scope: until when a run has said that nothing should start. It may have lost its lease before.
    holds: BTreeMap<(usize, Scope), Timestamp>,
    pub(crate) schedules: Told,
    /// Of each task, the newest start.
    started: [Option<Timestamp>; 3],
    /// Counts verbs, so that they come from each handle in turn.
    verbs: usize,
    /// Steps since everything settled.
    unsettled: u64,
    tally: Tally,
}

pub(crate) async fn play(stand: Stand, history: &History) -> Played<Tally> {
    let mut play = Play {
        stand,
        workers: Vec::new(),
        born: 0,
        jobs: Vec::new(),
        partitions: BTreeMap::new(),
        holds: BTreeMap::new(),
        schedules: Told::default(),
        started: [None; 3],
        verbs: 0,
        unsettled: 0,
        tally: Tally::default(),
    };
    for trade in &history.workers {
        play.begin(trade).await;
    }
    play.settle().await?;
    for (step, arrives) in &history.steps {
        play.tally.steps += 1;
        play.unsettled += 1;
        play.take(step).await?;
        if *arrives {
            play.stand.catch_up().await;
        }
    }
    play.settle().await?;
    // With sleepers that have nothing to start, and again when they were asked.
    play.look_whether_sound().await?;
    play.ask_sleepers().await?;
    play.look_whether_sound().await?;
    Ok(play.tally)
}

impl Play {
    async fn take(&mut self, step: &Step) -> Played {
        match step {
            Step::Enqueue { task, partition, jobs, after, expires } => {
                let mut stored = Vec::new();
                for _ in 0..*jobs {
                    let job = self.job(*task, Due::In(*after), *expires);
                    self.partitions.insert(job.id, partition);
                    stored.push(NewJob { partition: (*partition).into(), ..job });
                }
                let jobs = stored;
                let batch =
                    Enqueue { queue: name(QUEUES[TASKS[*task].1]), jobs, max_pending: None, producer: None };
                let store = self.handle();
                store.enqueue(batch).await.expect("the batch is stored");
            }
            Step::End { worker, run, how, claims } => self.end(worker, run, *how, *claims).await,
            Step::EndAll { claims } => {
                for worker in 0..self.workers.len() {
                    self.end_all(worker, *claims).await;
                }
            }
            Step::Claim { worker, tasks } => {
                if let Some(worker) = self.pick_woken(worker) {
                    self.workers[worker].wait = None;
                    for queue in 0..QUEUES.len() {
                        if self.workers[worker].may_claim(queue)
                            && let Some(claim) = self.workers[worker].claim(queue, *tasks)
                        {
                            self.turn(worker, queue, Vec::new(), Some(claim)).await;
                        }
                    }
                }
            }
            Step::Cancel { job } => {
                if let Some(job) = self.any_job(job) {
                    self.handle().cancel(job).await.expect("the cancel is answered");
                }
            }
            Step::Retry { job } => {
                if let Some(job) = self.any_job(job) {
                    self.handle().retry(job).await.expect("the retry is answered");
                }
            }
            Step::Limit { scope, change } => {
                if *change == Change::Paused(false) {
                    self.holds.retain(|(_, held), _| held != scope);
                }
                let store = self.handle();
                store.limit(scope.clone(), change.clone()).await.expect("the limit is set");
            }
            Step::Clear { scope } => {
                self.holds.retain(|(_, held), _| held != scope);
                for change in [Change::MaxConcurrent(None), Change::Rates(None), Change::Paused(false)] {
                    let store = self.handle();
                    store.limit(scope.clone(), change).await.expect("the limit is taken back");
                }
            }
            Step::Advance(time) => self.stand.hands.advance(*time),
            Step::Pass { beats } => {
                for _ in 0..*beats {
                    self.show_life().await;
                    self.stand.hands.advance(BEAT);
                    self.settle().await?;
                }
            }
            Step::GiveUp { worker } => {
                if let Some(worker) = self.pick(worker) {
                    self.workers[worker].wait = None;
                }
            }
            Step::Look { worker } => {
                self.look(worker);
            }
            Step::Stop { worker } => {
                if let Some(worker) = self.pick_woken(worker) {
                    let Worker { id, store, wait, .. } = self.workers.remove(worker);
                    drop(wait);
                    store.retire(id).await.expect("the worker retires");
                }
            }
            Step::Begin(trade) => self.begin(trade).await,
            Step::Settle => self.settle().await?,
            Step::Cut { after, is_heard } => self.stand.cut(*after, *is_heard).await,
            Step::Plan { queue, plan } => self.plan(*queue, *plan).await,
            Step::LoseTicks => self.schedules.is_lost = true,
            Step::Beat { worker } => {
                if let Some(worker) = self.pick(worker) {
                    self.beat(worker).await;
                }
            }
        }
        Ok(())
    }

    /// A handle on the store, each in turn.
    pub(crate) fn handle(&mut self) -> Arc<dyn flexiq::internals::Store> {
        self.verbs += 1;
        self.stand.handles[self.verbs % self.stand.handles.len()].clone()
    }

    fn pick(&self, worker: &Index) -> Option<usize> {
        (!self.workers.is_empty()).then(|| worker.index(self.workers.len()))
    }

    /// A worker that was woken and has not claimed, if there is any. Every other time one takes in its news first.
    fn pick_woken(&mut self, worker: &Index) -> Option<usize> {
        if worker.index(2) == 0 {
            self.look(worker);
        }
        let woken = |worker: &usize| !self.workers[*worker].woken.is_empty();
        let woken: Vec<usize> = (0..self.workers.len()).filter(woken).collect();
        if woken.is_empty() { self.pick(worker) } else { Some(woken[worker.index(woken.len())]) }
    }

    /// One that has news takes it in.
    fn look(&mut self, worker: &Index) {
        let has_news = |worker: &usize| self.workers[*worker].has_news();
        let told: Vec<usize> = (0..self.workers.len()).filter(has_news).collect();
        if !told.is_empty() {
            self.workers[told[worker.index(told.len())]].look();
        }
    }

    fn any_job(&self, job: &Index) -> Option<JobId> {
        (!self.jobs.is_empty()).then(|| self.jobs[job.index(self.jobs.len())])
    }

    pub(crate) fn job(&mut self, task: usize, due: Due, expires: Option<std::time::Duration>) -> NewJob {
        let mut bytes = [0; 16];
        bytes[15] = u8::try_from(self.jobs.len() % 256).expect("it is a byte");
        bytes[14] = u8::try_from(self.jobs.len() / 256).expect("a history is short");
        let id = JobId::from_bytes(bytes);
        self.jobs.push(id);
        NewJob {
            id,
            is_given: false,
            task: name(TASKS[task].0),
            partition: String::new(),
            max_pending_per_partition: None,
            payload: Payload { codec: 0, bytes: b"{}".to_vec() },
            priority: 0,
            due,
            expires,
            outset: Outset::default(),
            unique: None,
        }
    }

    /// A worker begins, where there is room for one. It waits when everything settles.
    async fn begin(&mut self, trade: &Trade) {
        if self.workers.len() == MOST_WORKERS {
            return;
        }
        self.born += 1;
        let id = WorkerId::from_bytes([self.born; 16]);
        let store = self.stand.handles[usize::from(self.born) % self.stand.handles.len()].clone();
        self.workers.push(Worker::new(id, store, trade.clone()));
        self.register(self.workers.len() - 1).await;
    }

    async fn register(&self, worker: usize) {
        let Worker { id, store, trade, .. } = &self.workers[worker];
        let declared = |(task, home): &(&str, usize)| Declared {
            task: name(task),
            queue: name(QUEUES[*home]),
            json: "{}".into(),
            limits: Limits { max_concurrent: trade.cap, ..Limits::default() },
            per_partition: Limits { max_concurrent: trade.cap_of_each, ..Limits::default() },
            schedule: None,
        };
        let linked = TASKS.iter().zip(trade.links).filter(|(_, is_linked)| *is_linked);
        let hello = Hello {
            worker: *id,
            label: "host:1".into(),
            lease: LEASE,
            queues: Vec::new(),
            tasks: linked.map(|(task, _)| declared(task)).collect(),
        };
        store.register(hello).await.expect("the worker registers");
    }

    /// Every worker says that it lives, and rings for nothing by it.
    async fn show_life(&self) {
        for worker in 0..self.workers.len() {
            self.register(worker).await;
        }
    }

    async fn beat(&mut self, worker: usize) {
        let Worker { id, store, runs, .. } = &self.workers[worker];
        let leases = runs.iter().map(|run| (run.lease, Lapse::Loss)).collect();
        let beat = Beat { worker: *id, lease: LEASE, every: BEAT, leases, permits: Vec::new(), report: None };
        let answer = store.extend(beat).await.expect("the beat is answered");
        self.told(answer.ticks).await;
    }

    async fn end(&mut self, worker: &Index, run: &Index, how: How, claims: bool) {
        let busy: Vec<usize> =
            (0..self.workers.len()).filter(|&worker| !self.workers[worker].runs.is_empty()).collect();
        if busy.is_empty() {
            return;
        }
        let worker = busy[worker.index(busy.len())];
        let run = run.index(self.workers[worker].runs.len());
        let run = self.workers[worker].runs.remove(run);
        let hold = match how {
            How::Holds(hold) => Some(hold),
            _ => None,
        };
        if let Some(hold) = hold {
            self.hold(&run, hold);
        }
        let finishes = vec![Finish { hold, ..Finish::new(run.lease, transition(how)) }];
        self.tell_ends(worker, TASKS[run.task].1, finishes, claims).await;
    }

    /// Remembers what a run holds.
    fn hold(&mut self, run: &Run, hold: Hold) {
        let (task, queue) = TASKS[run.task];
        let scope = match (hold.what, self.partitions[&run.lease.job]) {
            (Held::Queue, _) => Scope::Queue(name(QUEUES[queue])),
            (Held::Task, _) | (Held::Partition, "") => Scope::Task(name(task)),
            (Held::Partition, partition) => Scope::Partition(name(task), partition.into()),
        };
        let until = self.stand.clock.now() + hold.length;
        let held = self.holds.entry((queue, scope)).or_insert(until);
        *held = until.max(*held);
    }

    async fn end_all(&mut self, worker: usize, claims: bool) {
        for queue in 0..QUEUES.len() {
            let runs = &mut self.workers[worker].runs;
            let ended: Vec<Run> = runs.extract_if(.., |run| TASKS[run.task].1 == queue).collect();
            let finish = |run: Run| Finish::new(run.lease, transition(How::Succeeds));
            if !ended.is_empty() {
                let finishes = ended.into_iter().map(finish).collect();
                self.tell_ends(worker, queue, finishes, claims).await;
            }
        }
    }

    async fn tell_ends(&mut self, worker: usize, queue: usize, finishes: Vec<Finish>, claims: bool) {
        // As a pump does: what it waits for changes, so it leaves before it asks.
        self.workers[worker].wait = None;
        let may_claim = claims && self.workers[worker].may_claim(queue);
        let claim = if may_claim { self.workers[worker].claim(queue, [true; 3]) } else { None };
        self.turn(worker, queue, finishes, claim).await;
    }

    /// Takes a turn; answers whether it was of any use, what was claimed and whether there is more.
    async fn turn(
        &mut self,
        worker: usize,
        queue: usize,
        finishes: Vec<Finish>,
        claim: Option<Claim>,
    ) -> (bool, Vec<Claimed>, bool) {
        let worker = &mut self.workers[worker];
        if claim.is_some() {
            worker.woken.retain(|woken| *woken != queue);
        }
        worker.turns += 1;
        let turn =
            Turn { worker: worker.id, queue: name(QUEUES[queue]), number: worker.turns, finishes, claim };
        let answer = worker.store.turn(turn.into()).await.expect("the turn is answered");
        for claimed in &answer.claimed {
            self.started[worker.start(claimed)] = Some(claimed.claimed_at);
        }
        let is_useful = !answer.claimed.is_empty() || !answer.ticks.is_empty();
        self.told(answer.ticks).await;
        (is_useful, answer.claimed, answer.more)
    }

    /// Lets everything arrive and every woken worker claim, until all sleep or are full.
    async fn settle(&mut self) -> Played {
        let now = self.stand.clock.now();
        for worker in &mut self.workers {
            if worker.drop_lapsed(now) {
                worker.wait = None;
            }
        }
        let (mut wakes, mut vain) = (0, 0);
        loop {
            self.stand.catch_up().await;
            let mut is_quiet = true;
            for worker in &mut self.workers {
                is_quiet &= !worker.look();
            }
            if !is_quiet {
                continue;
            }
            let awake = |worker: &Worker| worker.wait.is_none() && !worker.hungry_for().is_empty();
            let Some(worker) = self.workers.iter().position(awake) else { break };
            if !self.workers[worker].woken.is_empty() {
                wakes += 1;
                vain += u64::from(!self.claim_what_rang(worker).await);
            }
            if wakes > MOST_WAKES {
                return Err(TestCaseError::fail("the workers wake each other for ever"));
            }
            if vain > self.unsettled + MOST_VAIN {
                return Err(TestCaseError::fail(format!("{vain} were woken for nothing")));
            }
            if !self.workers[worker].hungry_for().is_empty() {
                self.workers[worker].fall_asleep();
            }
        }
        self.tally.wakes += wakes;
        self.tally.vain += vain;
        self.unsettled = 0;
        self.look_at_sleepers().await
    }

    /// Claims from the queues that a worker was woken for, while there is more; answers whether it got anything, or was told of
    /// a schedule.
    async fn claim_what_rang(&mut self, worker: usize) -> bool {
        let mut has_claimed = false;
        for queue in std::mem::take(&mut self.workers[worker].woken) {
            while let Some(claim) = self.workers[worker].claim(queue, [true; 3]) {
                let (is_useful, _, more) = self.turn(worker, queue, Vec::new(), Some(claim)).await;
                has_claimed |= is_useful;
                if !more {
                    break;
                }
            }
        }
        has_claimed
    }

    /// Whoever sleeps has nothing to start, as far as it can be seen without asking: a rate is surely open when its period
    /// has passed without a start.
    async fn look_at_sleepers(&self) -> Played {
        self.look_at_schedules().await?;
        let store = &self.stand.handles[0];
        let counts = store.counts().await.expect("the store answers");
        let limits = store.limits().await.expect("the store answers");
        let now = self.stand.clock.now();
        let mut partitions: BTreeMap<(usize, String), (bool, u64)> = BTreeMap::new();
        for state in [State::Ready, State::Running, State::Scheduled(ScheduledReason::Delay)] {
            let filter = Filter { state: Some(state), limit: 1_000, ..Filter::default() };
            for job in flexiq_tests::listed(&**store, filter).await.expect("the store answers") {
                let task =
                    TASKS.iter().position(|(task, _)| *task == job.task).expect("a task of this world");
                let (is_ready, running) =
                    partitions.entry((task, job.partition.clone().unwrap_or_default())).or_default();
                *is_ready |= state == State::Ready;
                *running += u64::from(state == State::Running);
                let is_due = matches!(job.state, State::Scheduled(_)) && Timestamp::from(job.due_at) <= now;
                let is_pending = state != State::Running;
                let has_expired =
                    is_pending && job.expires_at.is_some_and(|moment| Timestamp::from(moment) <= now);
                let keeps_time = |worker: &Worker| worker.waits_in(&job.queue);
                if (is_due || has_expired) && self.workers.iter().any(keeps_time) {
                    return Err(TestCaseError::fail(format!(
                        "nobody keeps the time of {}: {job:?}",
                        job.queue
                    )));
                }
            }
        }
        let is_open = |queue: usize, scope: Scope, running: u64, started: Option<Timestamp>| {
            if self.holds.get(&(queue, scope.clone())).is_some_and(|until| *until > now) {
                return false;
            }
            let of = |scope: &Scope| limits.iter().find(|standing| standing.scope == *scope);
            let each = match &scope {
                Scope::Partition(task, _) => of(&Scope::EachPartition(task.clone())),
                _ => None,
            };
            of(&scope).or(each).is_none_or(|standing| {
                let limits = standing.limits();
                let is_full = limits.max_concurrent.is_some_and(|cap| running >= u64::from(cap));
                let has_left = |rate: &Rate| started.is_none_or(|started| started + rate.period <= now);
                !standing.is_paused && !is_full && limits.rates.iter().all(has_left)
            })
        };
        for of in counts.tasks.iter().filter(|of| of.ready > 0) {
            let task = TASKS.iter().position(|(task, _)| *task == of.task).expect("a task of this world");
            let alike = counts.tasks.iter().filter(|other| other.queue == of.queue);
            let in_queue = alike.map(|other| other.running).sum();
            let newest = (0..TASKS.len()).filter(|&other| TASKS[other].1 == TASKS[task].1);
            let newest = newest.filter_map(|other| self.started[other]).max();
            let queue = TASKS[task].1;
            let has_open = partitions.iter().any(|((other, partition), (is_ready, running))| {
                let scope = Scope::Partition(name(&of.task), partition.clone());
                // A partition has not started later than its task.
                let is_open = || partition.is_empty() || is_open(queue, scope, *running, self.started[task]);
                *other == task && *is_ready && is_open()
            });
            if !has_open
                || !is_open(queue, Scope::Task(name(&of.task)), of.running, self.started[task])
                || !is_open(queue, Scope::Queue(name(&of.queue)), in_queue, newest)
            {
                continue;
            }
            if let Some(worker) = self.workers.iter().position(|worker| worker.sleeps_for(task)) {
                return Err(TestCaseError::fail(format!("worker {worker} sleeps, and {of:?}")));
            }
        }
        Ok(())
    }

    /// All that is stored goes together.
    async fn look_whether_sound(&self) -> Played {
        let found = self.stand.handles[0].check(Repair::Nothing).await.expect("the store is checked");
        match found.is_empty() {
            true => Ok(()),
            false => Err(TestCaseError::fail(format!("the store is not sound: {found:#?}"))),
        }
    }

    /// A worker that sleeps has nothing to start.
    async fn ask_sleepers(&mut self) -> Played {
        for worker in 0..self.workers.len() {
            if self.workers[worker].wait.is_none() {
                continue;
            }
            for queue in self.workers[worker].hungry_for() {
                let claim = self.workers[worker].claim(queue, [true; 3]);
                let (_, claimed, _) = self.turn(worker, queue, Vec::new(), claim).await;
                if let Some(job) = claimed.first() {
                    return Err(TestCaseError::fail(format!(
                        "worker {worker} slept, and could start {} of {} in {}, ready since {:?}, now {:?}",
                        job.lease.job,
                        job.task,
                        QUEUES[queue],
                        job.ready_at.since(flexiq_tests::START),
                        self.stand.clock.now().since(flexiq_tests::START),
                    )));
                }
            }
        }
        Ok(())
    }
}

fn transition(how: How) -> Transition {
    match how {
        How::Succeeds => Transition::Succeed { value: Value::Unit, keep: secs(300) },
        How::RetriesAfter(time) => {
            Transition::Schedule { reason: ScheduledReason::Retry, due: Due::In(time), error: None }
        }
        How::IsReleased => Transition::Release,
        How::Holds(_) => Transition::PutBack,
        How::Dies => Transition::Kill { reason: flexiq::DeadReason::Failures, error: None },
    }
}
