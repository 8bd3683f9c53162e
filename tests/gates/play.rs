//! Plays a history: each step becomes a verb, or moves the clock. What is seen of it is written down in `witness`.

use std::sync::Arc;

use flexiq::JobId;
use flexiq::internals::{
    Beat, Cancelled, Declared, Due, Enqueue, Finish, Hello, Lapse, LeaseId, NewJob, Outset, Payload, Repair,
    Retried, Scope, Store, Turn, WorkerId,
};
use flexiq_tests::ledger::{Act, Deed, Lane};

use crate::stand::Stand;
use crate::steps::{BEAT, Declaration, End, History, LEASE, QUEUES, Step, TASKS, WORKERS, Wanted, name};
use crate::witness::Witness;

/// A worker, as it knows itself.
#[derive(Clone, Debug)]
struct Worker {
    id: WorkerId,
    /// The runs that it believes to have, each with its queue.
    runs: Vec<(usize, LeaseId)>,
}

/// A history under way.
struct Play {
    stand: Stand,
    /// Counts verbs, so that they come from each handle in turn.
    verbs: usize,
    workers: [Worker; WORKERS],
    /// It declares all limits, and runs nothing.
    declarer: (WorkerId, Declaration),
    /// Every job that was ever stored.
    jobs: Vec<JobId>,
    turns: u64,
    witness: Witness,
}

/// Plays a history on a store; answers all that was done and seen.
pub(crate) async fn play(stand: Stand, history: &History) -> Vec<Act> {
    let mut play = Play {
        stand,
        verbs: 0,
        workers: [(); WORKERS].map(|()| Worker { id: WorkerId::new(), runs: Vec::new() }),
        declarer: (WorkerId::new(), history.declaration.clone()),
        jobs: Vec::new(),
        turns: 0,
        witness: Witness::default(),
    };
    play.declare(&history.declaration).await;
    for worker in play.workers.clone() {
        play.say_hello(worker.id).await;
    }
    for step in &history.steps {
        play.take(step).await;
        play.see_lapses().await;
    }
    let found = play.handle().check(Repair::Nothing).await.expect("the store is checked");
    assert!(found.is_empty(), "the store is not sound: {found:#?}");
    play.witness.acts
}

impl Play {
    async fn take(&mut self, step: &Step) {
        match step {
            Step::Enqueue { task, partition, jobs, priority, after } => {
                let batch = (0..*jobs).map(|_| NewJob {
                    priority: *priority,
                    due: Due::In(*after),
                    ..self.job(*task, partition)
                });
                let batch: Vec<NewJob> = batch.collect();
                self.enqueue(TASKS[*task].1, batch).await;
            }
            Step::Turn { worker, queue, ends, room } => self.turn(*worker, *queue, ends, room.as_ref()).await,
            Step::Set { scope, change } => {
                self.handle().limit(scope.clone(), change.clone()).await.expect("the limit is set");
                let deed = Deed::Set { scope: scope.clone(), change: change.clone() };
                self.witness.write(self.stand.clock.now(), deed);
            }
            Step::Declare(declaration) => self.declare(declaration).await,
            Step::Advance(time) => self.stand.hands.advance(*time),
            Step::Pass { beats } => {
                for _ in 0..*beats {
                    self.stand.hands.advance(BEAT);
                    self.beat_all().await;
                }
            }
            Step::Crash { worker } => {
                self.workers[*worker] = Worker { id: WorkerId::new(), runs: Vec::new() };
                self.say_hello(self.workers[*worker].id).await;
            }
            Step::Cancel { job } if !self.jobs.is_empty() => {
                let job = self.jobs[job.index(self.jobs.len())];
                if self.handle().cancel(job).await.expect("it answers") == Some(Cancelled::Done) {
                    self.witness.write(self.stand.clock.now(), Deed::Gone { job });
                }
            }
            Step::Retry { job } if !self.jobs.is_empty() => {
                let job = self.jobs[job.index(self.jobs.len())];
                if self.handle().retry(job).await.expect("it answers") == Retried::Done {
                    let store = self.handle();
                    self.witness.sees(&*store, job).await;
                }
            }
            Step::Cancel { .. } | Step::Retry { .. } => {}
        }
    }

    /// A handle on the store, each in turn.
    fn handle(&mut self) -> Arc<dyn Store> {
        self.verbs += 1;
        self.stand.handles[self.verbs % self.stand.handles.len()].clone()
    }

    fn job(&mut self, task: usize, partition: &str) -> NewJob {
        // No two alike, and in an order of their own.
        let number = self.jobs.len() as u128 + 1;
        let id =
            JobId::from_bytes(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes());
        self.jobs.push(id);
        let lane = Lane {
            queue: name(QUEUES[TASKS[task].1]),
            task: name(TASKS[task].0),
            partition: partition.into(),
        };
        self.witness.knows(id, lane);
        NewJob {
            id,
            is_given: true,
            task: name(TASKS[task].0),
            partition: partition.into(),
            max_pending_per_partition: None,
            payload: Payload { codec: 0, bytes: b"{}".to_vec() },
            priority: 0,
            due: Due::NOW,
            expires: None,
            outset: Outset::default(),
            unique: None,
        }
    }

    async fn enqueue(&mut self, queue: usize, jobs: Vec<NewJob>) {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let batch = Enqueue { queue: name(QUEUES[queue]), jobs, max_pending: None, producer: None };
        let store = self.handle();
        store.enqueue(batch).await.expect("the batch is stored");
        for id in ids {
            self.witness.sees(&*store, id).await;
        }
    }

    async fn turn(&mut self, worker: usize, queue: usize, ends: &[End], room: Option<&Wanted>) {
        let finishes = ends.iter().filter_map(|end| self.finish(worker, queue, end)).collect();
        self.turns += 1;
        let turn = Arc::new(Turn {
            worker: self.workers[worker].id,
            queue: name(QUEUES[queue]),
            number: self.turns,
            finishes,
            claim: room.map(Wanted::claim),
        });
        let store = self.handle();
        let answer = store.turn(turn.clone()).await.expect("the turn is answered");
        self.workers[worker].runs.extend(answer.claimed.iter().map(|claimed| (queue, claimed.lease)));
        self.witness.sees_turn(&*store, &turn, &answer).await;
    }

    /// A run of this worker and queue that ends, if there is any.
    fn finish(&mut self, worker: usize, queue: usize, end: &End) -> Option<Finish> {
        let runs = &mut self.workers[worker].runs;
        let of_queue: Vec<usize> = (0..runs.len()).filter(|&run| runs[run].0 == queue).collect();
        let run = *of_queue.get(end.run.index(of_queue.len().max(1)))?;
        let (_, lease) = runs.remove(run);
        Some(Finish { hold: end.hold, ..Finish::new(lease, end.how.transition()) })
    }

    async fn beat_all(&mut self) {
        for worker in 0..WORKERS {
            let Worker { id, runs } = self.workers[worker].clone();
            let leases: Vec<LeaseId> = runs.iter().map(|(_, lease)| *lease).collect();
            let lost = self.beat(id, &leases).await;
            self.workers[worker].runs.retain(|(_, lease)| !lost.contains(lease));
            self.see_lapses().await;
        }
        if !self.beat(self.declarer.0, &[]).await.is_empty() {
            unreachable!("it has no leases");
        }
    }

    /// Beats once; answers the leases that were lost.
    async fn beat(&mut self, worker: WorkerId, leases: &[LeaseId]) -> Vec<LeaseId> {
        let named = leases.iter().map(|&lease| (lease, Lapse::Loss)).collect();
        let beat =
            Beat { worker, lease: LEASE, every: BEAT, leases: named, permits: Vec::new(), report: None };
        let answer = self.handle().extend(beat).await.expect("the beat is answered");
        let renewed = leases.iter().filter(|lease| !answer.lost.contains(lease));
        self.witness.renews(self.stand.clock.now(), renewed);
        if answer.is_unknown && worker == self.declarer.0 {
            self.declare(&self.declarer.1.clone()).await;
        } else if answer.is_unknown {
            self.say_hello(worker).await;
        }
        answer.lost
    }

    /// A worker that runs jobs and declares nothing.
    async fn say_hello(&mut self, worker: WorkerId) {
        let hello = Hello { worker, label: "host:1".into(), lease: LEASE, queues: vec![], tasks: vec![] };
        self.handle().register(hello).await.expect("a worker registers");
    }

    async fn declare(&mut self, declaration: &Declaration) {
        self.declarer.1 = declaration.clone();
        let Declaration { tasks, per_partition, queues } = declaration;
        let queues: Vec<_> =
            QUEUES.iter().zip(queues).map(|(queue, limits)| (name(queue), limits.clone())).collect();
        let declared =
            TASKS.iter().zip(tasks).zip(per_partition).map(|(((task, home), limits), each)| Declared {
                task: name(task),
                queue: name(QUEUES[*home]),
                json: "{}".into(),
                limits: limits.clone(),
                per_partition: each.clone(),
                schedule: None,
            });
        let declared: Vec<Declared> = declared.collect();
        let of_tasks = declared.iter().flat_map(|task| {
            [
                (Scope::Task(task.task.clone()), task.limits.clone()),
                (Scope::EachPartition(task.task.clone()), task.per_partition.clone()),
            ]
        });
        let of_queues = queues.iter().map(|(queue, limits)| (Scope::Queue(queue.clone()), limits.clone()));
        let deed = Deed::Declared { limits: of_queues.chain(of_tasks).collect() };
        let hello =
            Hello { worker: self.declarer.0, label: "host:0".into(), lease: LEASE, queues, tasks: declared };
        self.handle().register(hello).await.expect("it registers");
        self.witness.write(self.stand.clock.now(), deed);
    }

    async fn see_lapses(&mut self) {
        let store = self.handle();
        self.witness.sees_lapses(&*store, &[]).await;
    }
}
