//! What the workers of a history say: they register, take turns, beat, retire, or never speak again.

use std::sync::Arc;

use flexiq::internals::{
    Beat, BeatAnswer, Claim, Declared, Due, Finish, Hello, Lapse, LeaseId, Room, ScheduledReason, Tell,
    Transition, Turn, TurnAnswer, WorkerId,
};
use proptest::sample::Index;

use crate::limits::{Declaration, name};
use crate::play::{Play, Played};
use crate::say::Say;
use crate::steps::{BEAT, End, HOMES, LEASE, Lease, Named, QUEUES, TASKS, WORKERS, Wanted};

/// A worker, as it knows itself.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    declaration: Declaration,
    /// By queue, the leases it believes to hold.
    held: [Vec<LeaseId>; 2],
    /// By queue, its newest turn.
    turns: [Option<Arc<Turn>>; 2],
}

impl Play {
    /// This worker and queue, or where it runs nothing, the next that runs something.
    pub(crate) fn busy(&self, worker: usize, queue: usize) -> (usize, usize) {
        let holds = |(worker, queue): &(usize, usize)| {
            self.workers[*worker].as_ref().is_some_and(|worker| !worker.held[*queue].is_empty())
        };
        let from = worker * QUEUES.len() + queue;
        let mut places = (0..WORKERS * QUEUES.len()).map(|step| {
            let place = (from + step) % (WORKERS * QUEUES.len());
            (place / QUEUES.len(), place % QUEUES.len())
        });
        places.find(holds).unwrap_or((worker, queue))
    }

    /// A turn whose number is so much above the newest.
    pub(crate) async fn turn(
        &mut self,
        worker: usize,
        queue: usize,
        finishes: &[End],
        claim: Option<&Wanted>,
        above: i64,
    ) -> Played {
        let speaker = self.living_at(worker).await?;
        let newest = speaker.turns[queue].as_ref().map_or(0, |turn| turn.number);
        let turn = Arc::new(Turn {
            worker: speaker.id,
            queue: name(QUEUES[queue]),
            number: newest.saturating_add_signed(above),
            finishes: self.finishes(&speaker.held[queue], finishes),
            claim: claim.map(claim_of),
        });
        if turn.number > newest {
            self.at(worker).turns[queue] = Some(turn.clone());
        }
        self.send(worker, queue, turn).await
    }

    pub(crate) async fn turn_again(&mut self, worker: usize, queue: usize) -> Played {
        match self.living_at(worker).await?.turns[queue].clone() {
            Some(turn) => self.send(worker, queue, turn).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, worker: usize, queue: usize, turn: Arc<Turn>) -> Played {
        let answer = self.sides.ask("turn", |store| store.turn(turn.clone())).await?;
        let TurnAnswer { claimed, ticks, .. } = answer.unwrap_or_default();
        self.told.extend(ticks);
        let leases: Vec<LeaseId> = claimed.iter().map(|claimed| claimed.lease).collect();
        self.leased.extend(&leases);
        let held = &mut self.at(worker).held[queue];
        // Whatever the answer, the runs have ended.
        held.retain(|lease| turn.finishes.iter().all(|end| end.lease != *lease) && !leases.contains(lease));
        held.extend(leases);
        Ok(())
    }

    fn finishes(&self, held: &[LeaseId], ends: &[End]) -> Vec<Finish> {
        ends.iter()
            .filter_map(|End { lease, transition, hold, notes }| {
                let lease = self.pick_lease(held, lease)?;
                let mut transition = transition.clone();
                if let Transition::Schedule {
                    reason: ScheduledReason::Limit, due: due @ Due::In(_), ..
                } = &mut transition
                {
                    // Mostly a run says what it was told.
                    *due = self.permits.told(lease).map_or(*due, Due::At);
                }
                let notes = notes.as_ref().map(|say| Box::new(say.notes(self.now())));
                Some(Finish { hold: *hold, notes, ..Finish::new(lease, transition) })
            })
            .collect()
    }

    /// A lease of a worker and queue.
    pub(crate) fn lease_of(&self, worker: usize, queue: usize, lease: &Lease) -> Option<LeaseId> {
        let held = self.workers[worker].as_ref().map_or(&[][..], |worker| &worker.held[queue]);
        self.pick_lease(held, lease)
    }

    fn pick_lease(&self, held: &[LeaseId], lease: &Lease) -> Option<LeaseId> {
        Some(match lease {
            Lease::Held(of) => pick(held, of)?,
            Lease::Any(of) => pick(&self.leased, of)?,
            Lease::OfRun(of, run) => LeaseId { run: *run, ..pick(held, of)? },
        })
    }

    /// A run tells of itself.
    pub(crate) async fn tell(&mut self, worker: usize, queue: usize, lease: &Lease, say: &Say) -> Played {
        let speaker = self.living_at(worker).await?;
        let Some(lease) = self.lease_of(worker, queue, lease) else { return Ok(()) };
        let (queue, runs) = (name(QUEUES[queue]), vec![(lease, say.notes(self.now()))]);
        let tell = Tell { worker: speaker.id, queue, runs };
        self.sides.ask("tell", |store| store.tell(tell.clone())).await.map(drop)
    }

    pub(crate) async fn beat(&mut self, worker: usize, named: Named, lapse: Lapse) -> Played {
        let speaker = self.living_at(worker).await?;
        let leases = match named {
            Named::All => speaker.held.concat(),
            Named::EveryOther => speaker.held.concat().into_iter().step_by(2).collect(),
            Named::None => Vec::new(),
            Named::Everyones => self.leased.clone(),
        };
        let answer = self.send_beat(speaker.id, &leases, lapse).await?;
        for held in &mut self.at(worker).held {
            held.retain(|lease| !answer.lost.contains(lease));
        }
        if answer.is_unknown {
            self.say_hello(&speaker).await?;
        }
        Ok(())
    }

    pub(crate) async fn send_beat(
        &mut self,
        worker: WorkerId,
        leases: &[LeaseId],
        lapse: Lapse,
    ) -> Played<BeatAnswer> {
        let permits = self.permits.of_runs(leases);
        let report = (leases.len() % 2 == 1).then(|| leases.len().to_string());
        let leases = leases.iter().map(|&lease| (lease, lapse)).collect();
        let beat = Beat { worker, lease: LEASE, every: BEAT, leases, permits, report };
        let answer = self.sides.ask("extend", |store| store.extend(beat.clone())).await?.unwrap_or_default();
        self.told.extend(answer.ticks.iter().cloned());
        let now = self.now();
        self.permits.renewed(&beat.permits, &answer.lapsed, now);
        Ok(answer)
    }

    pub(crate) async fn register_living(&self) -> Played {
        let hello = Hello {
            worker: self.living,
            label: "host:0".into(),
            lease: LEASE,
            queues: Vec::new(),
            tasks: Vec::new(),
        };
        self.sides.ask("register", |store| store.register(hello.clone())).await.map(drop)
    }

    /// The worker at a place. If it has gone, another begins there.
    async fn living_at(&mut self, worker: usize) -> Played<Worker> {
        if self.workers[worker].is_none() {
            let declaration = self.births[usize::from(self.born) % self.births.len()].clone();
            self.register(worker, &declaration).await?;
        }
        Ok(self.at(worker).clone())
    }

    fn at(&mut self, worker: usize) -> &mut Worker {
        self.workers[worker].as_mut().expect("a worker lives here")
    }

    /// A worker begins. One that lives already says the same again, as it does when its store lost it.
    pub(crate) async fn register(&mut self, worker: usize, declaration: &Declaration) -> Played {
        if self.workers[worker].is_none() {
            self.born += 1;
            self.workers[worker] = Some(Worker {
                id: WorkerId::from_bytes([self.born; 16]),
                declaration: declaration.clone(),
                held: [Vec::new(), Vec::new()],
                turns: [None, None],
            });
        }
        let speaker = self.at(worker).clone();
        self.say_hello(&speaker).await
    }

    async fn say_hello(&self, speaker: &Worker) -> Played {
        let Declaration { tasks, per_partition, crons, queues, version } = &speaker.declaration;
        let queues = QUEUES.iter().zip(queues);
        let tasks = TASKS.iter().zip(HOMES).zip(tasks).zip(per_partition).zip(crons);
        let hello = Hello {
            worker: speaker.id,
            label: "host:1".into(),
            lease: LEASE,
            queues: queues.filter_map(|(queue, limits)| Some((name(queue), limits.clone()?))).collect(),
            tasks: tasks
                .filter_map(|((((task, home), limits), per_partition), schedule)| {
                    Some(Declared {
                        task: name(task),
                        queue: name(home),
                        json: format!("{{\"version\":{version}}}"),
                        limits: limits.clone()?,
                        per_partition: per_partition.clone(),
                        schedule: schedule.clone(),
                    })
                })
                .collect(),
        };
        self.sides.ask("register", |store| store.register(hello.clone())).await.map(drop)
    }

    pub(crate) async fn retire(&mut self, worker: usize) -> Played {
        match self.workers[worker].take() {
            Some(gone) => self.sides.ask("retire", |store| store.retire(gone.id)).await.map(drop),
            None => Ok(()),
        }
    }
}

fn claim_of(wanted: &Wanted) -> Claim {
    let rooms = TASKS.iter().zip(&wanted.rooms).filter_map(|(task, room)| {
        let (slot, at_most, max_losses) = (*room)?;
        Some(Room { task: name(task), slot, at_most, max_losses })
    });
    Claim { slots: wanted.slots.clone(), tasks: rooms.collect(), lease: LEASE }
}

pub(crate) fn pick<T: Copy>(of: &[T], index: &Index) -> Option<T> {
    pick_of(of, index).copied()
}

pub(crate) fn pick_of<'a, T>(of: &'a [T], index: &Index) -> Option<&'a T> {
    if of.is_empty() { None } else { Some(&of[index.index(of.len())]) }
}
