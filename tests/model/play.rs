//! Plays a history: each step becomes a verb, or moves the clock. What workers say is in `fleet`.

use std::collections::BTreeMap;
use std::time::Duration;

use flexiq::internals::{DueTick, Enqueue, Lapse, LeaseId, NewJob, Payload, Timestamp, WorkerId};
use flexiq::{Job, JobId};
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;

use crate::compare::{compare, compare_ends, compare_filtered, compare_soundness};
use crate::fleet::{Worker, pick};
use crate::limits::{Declaration, name};
use crate::permits::Permits;
use crate::sides::{Kind, Sides};
use crate::steps::{BEAT, Call, History, LEASE, QUEUES, Step, TASKS, WORKERS, secs};

pub(crate) type Played<T = ()> = Result<T, TestCaseError>;

/// A history under way.
pub(crate) struct Play {
    pub(crate) sides: Sides,
    pub(crate) workers: [Option<Worker>; WORKERS],
    /// A worker that beats while time passes, and holds nothing.
    pub(crate) living: WorkerId,
    /// What workers declare that begin because a step names them, in turn.
    pub(crate) births: Vec<Declaration>,
    /// Workers that ever were: the id of the next.
    pub(crate) born: u8,
    /// Every job that was ever enqueued, and its task.
    pub(crate) enqueued: Vec<(JobId, usize)>,
    /// Every lease that anyone was ever given.
    pub(crate) leased: Vec<LeaseId>,
    pub(crate) permits: Permits,
    /// Every schedule that anyone was told of.
    pub(crate) told: Vec<DueTick>,
    /// The jobs there are, as all sides see them.
    pub(crate) jobs: BTreeMap<JobId, Job>,
}

/// Plays a history on all sides of a kind; the first difference ends it.
pub(crate) async fn play(history: &History, kind: Kind) -> Played {
    let mut play = Play::begin(history.births.clone(), kind).await?;
    for (number, step) in history.steps.iter().enumerate() {
        play.take(step).await.map_err(|error| at(number, error))?;
        play.permits.look(play.sides.clock.now());
        play.jobs = compare(&play.sides, &play.jobs).await.map_err(|error| at(number, error))?;
    }
    compare_ends(&play.sides, &play.jobs).await?;
    compare_soundness(&play.sides).await
}

fn at(number: usize, error: TestCaseError) -> TestCaseError {
    TestCaseError::fail(format!("at step {number}: {error}"))
}

impl Play {
    async fn begin(births: Vec<Declaration>, kind: Kind) -> Played<Self> {
        let play = Self {
            sides: Sides::open(kind).await,
            workers: [const { None }; WORKERS],
            living: WorkerId::from_bytes([0xff; 16]),
            births,
            born: 0,
            enqueued: Vec::new(),
            leased: Vec::new(),
            permits: Permits::default(),
            told: Vec::new(),
            jobs: BTreeMap::new(),
        };
        play.register_living().await?;
        Ok(play)
    }

    async fn take(&mut self, step: &Step) -> Played {
        match step {
            Step::Enqueue { queue, jobs, max_pending } => self.enqueue(*queue, jobs, *max_pending).await,
            Step::Turn { worker, queue, finishes, claim } => {
                let (worker, queue) =
                    if finishes.is_empty() { (*worker, *queue) } else { self.busy(*worker, *queue) };
                self.turn(worker, queue, finishes, claim.as_ref(), 1).await
            }
            Step::LateTurn { worker, queue, finishes, claim } => {
                self.turn(*worker, *queue, finishes, claim.as_ref(), -1).await
            }
            Step::TurnAgain { worker, queue } => self.turn_again(*worker, *queue).await,
            Step::Beat { worker, leases, lapse } => self.beat(*worker, *leases, *lapse).await,
            Step::Tell { worker, queue, lease, say } => {
                let (worker, queue) = self.busy(*worker, *queue);
                self.tell(worker, queue, lease, say).await
            }
            Step::Acquire { worker, queue, lease, wish } => self.acquire(*worker, *queue, lease, wish).await,
            Step::GiveBack(given) => self.give_back(given).await,
            Step::Register { worker, declaration } => self.register(*worker, declaration).await,
            Step::Retire { worker } => self.retire(*worker).await,
            Step::Crash { worker } => {
                self.workers[*worker] = None;
                Ok(())
            }
            Step::Cancel { job } => {
                let id = self.any_job(job);
                self.sides.ask("cancel", |store| store.cancel(id)).await.map(drop)
            }
            Step::Retry { job } => {
                let id = self.any_job(job);
                self.sides.ask("retry", |store| store.retry(id)).await.map(drop)
            }
            Step::Delete { job } => {
                let id = self.any_job(job);
                self.sides.ask("delete", |store| store.delete(id)).await.map(drop)
            }
            Step::CancelPartition { task, partition } => {
                let task = name(TASKS[*task]);
                let cancelled = self.sides.ask("cancel_partition", |store| {
                    store.cancel_partition(task.clone(), (*partition).into())
                });
                cancelled.await.map(drop)
            }
            Step::Read { job, queue, task, like, limit } => {
                let id = self.any_job(job);
                drop(self.sides.ask("job", |store| store.job(id)).await?);
                let like = like.as_ref().and_then(|like| self.jobs.get(&self.any_job(like)));
                let (queue, task) = (queue.map(|of| name(QUEUES[of])), task.map(|of| name(TASKS[of])));
                compare_filtered(&self.sides, queue, task, like, *limit).await
            }
            Step::Limit(turned) => self
                .sides
                .ask("limit", |store| store.limit(turned.scope.clone(), turned.change.clone()))
                .await
                .map(drop),
            Step::Plan { queue, schedule, planning } => self.plan(*queue, schedule, planning).await,
            Step::Tick { told, next, runs, max_pending } => self.tick(told, *next, *runs, *max_pending).await,
            Step::Advance(time) => {
                self.sides.hands.advance(*time);
                Ok(())
            }
            Step::Reach { moment, off_ms } => {
                self.reach(moment, *off_ms);
                Ok(())
            }
            Step::Pass { beats } => self.pass(*beats).await,
            Step::JumpBy { ms } => {
                self.sides.hands.step_to(Timestamp::from_millis(self.now().as_millis() + ms));
                Ok(())
            }
            Step::Reopen => {
                self.sides.reopen().await;
                Ok(())
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.sides.clock.now()
    }

    /// A job that was enqueued at some time, or one that never was.
    fn any_job(&self, of: &Index) -> JobId {
        match self.enqueued.len() {
            0 => job_id(0),
            some => self.enqueued[of.index(some)].0,
        }
    }

    async fn enqueue(&mut self, queue: usize, calls: &[Call], max_pending: Option<u64>) -> Played {
        let jobs = calls.iter().map(|call| self.job(call)).collect();
        let batch = Enqueue { queue: name(QUEUES[queue]), jobs, max_pending, producer: None };
        self.sides.ask("enqueue", |store| store.enqueue(batch.clone())).await.map(drop)
    }

    fn job(&mut self, call: &Call) -> NewJob {
        let before = call.again.as_ref().filter(|_| !self.enqueued.is_empty());
        let (id, task) = match before {
            Some(again) => {
                let (id, task) = self.enqueued[again.job.index(self.enqueued.len())];
                (id, if again.is_same_task { task } else { call.task })
            }
            None => (self.new_job(call.task), call.task),
        };
        NewJob {
            id,
            task: name(TASKS[task]),
            partition: call.partition.into(),
            max_pending_per_partition: call.max_pending_per_partition,
            payload: Payload { codec: 0, bytes: vec![b' '; call.bytes] },
            priority: call.priority,
            due: call.due,
            expires: call.expires,
            outset: call.outset,
            unique: call.unique.map(|unique| unique.of(TASKS[task])),
            is_given: true,
        }
    }

    /// The id of a job that was not there before.
    pub(crate) fn new_job(&mut self, task: usize) -> JobId {
        let id = job_id(self.enqueued.len() + 1);
        self.enqueued.push((id, task));
        id
    }

    /// Lets time pass with a beat of the living worker every three seconds.
    async fn pass(&mut self, beats: u32) -> Played {
        for _ in 0..beats {
            self.sides.hands.advance(BEAT);
            if self.send_beat(self.living, &[], Lapse::Loss).await?.is_unknown {
                self.register_living().await?;
            }
        }
        Ok(())
    }

    /// Goes to about a moment at which a job is due or expires, or a lease or permit lapses. Never back, and never so far that all is pruned.
    fn reach(&self, moment: &Index, off_ms: i64) {
        let now = self.now();
        let moments = self.jobs.values().filter(|job| !job.state.is_ended()).flat_map(|job| {
            let lapse = job.started_at.map(|started| started + LEASE);
            [Some(job.due_at), job.expires_at, lapse]
        });
        let ahead = |moment: &Timestamp| *moment > now && moment.since(now) < secs(7_200);
        let moments = moments.flatten().map(Timestamp::from).chain(self.permits.moments());
        let moments: Vec<Timestamp> = moments.filter(ahead).collect();
        if let Some(moment) = pick(&moments, moment) {
            let by = moment.as_millis() + off_ms - now.as_millis();
            self.sides.hands.advance(Duration::from_millis(by.unsigned_abs()));
        }
    }
}

/// The id of the job that was enqueued as so many-th: no two alike, and in an order of their own.
fn job_id(number: usize) -> JobId {
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mixed.to_be_bytes());
    bytes[8..].copy_from_slice(&(number as u64).to_be_bytes());
    JobId::from_bytes(bytes)
}
