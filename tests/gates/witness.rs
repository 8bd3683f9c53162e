//! Writes down what is seen of a store: its answers, and what has become of jobs that were given back or lost.

use std::collections::BTreeMap;

use flexiq::internals::{Claimed, Finished, Held, Hold, LeaseId, Scope, Store, Timestamp, Turn, TurnAnswer};
use flexiq::{JobId, State};
use flexiq_tests::ledger::{Act, Deed, Lane, Place};

use crate::steps::LEASE;

/// What was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    pub(crate) acts: Vec<Act>,
    lanes: BTreeMap<JobId, Lane>,
    /// The leases that are not known to have ended: their run, and until when they last.
    leases: BTreeMap<JobId, (u32, Timestamp)>,
}

impl Witness {
    pub(crate) fn write(&mut self, now: Timestamp, deed: Deed) {
        self.acts.push(Act { at: now.as_millis(), deed });
    }

    /// A job that is about to be stored.
    pub(crate) fn knows(&mut self, job: JobId, lane: Lane) {
        self.lanes.insert(job, lane);
    }

    /// Looks whether a job waits, and where.
    pub(crate) async fn sees(&mut self, store: &dyn Store, id: JobId) {
        let job = store.job(id).await.expect("the store answers");
        if let Some(job) = job.filter(|job| matches!(job.state, State::Ready | State::Scheduled(_))) {
            let place = Place { priority: job.priority, due: Timestamp::from(job.due_at).as_millis() };
            self.waits(store.clock().now(), id, place);
        }
    }

    fn waits(&mut self, now: Timestamp, job: JobId, place: Place) {
        let lane = self.lanes[&job].clone();
        self.write(now, Deed::Waits { job, lane, place });
    }

    /// These leases last longer.
    pub(crate) fn renews<'a>(&mut self, now: Timestamp, leases: impl IntoIterator<Item = &'a LeaseId>) {
        for lease in leases {
            if let Some((_, until)) = self.leases.get_mut(&lease.job).filter(|(run, _)| *run == lease.run) {
                *until = now + LEASE;
            }
        }
    }

    /// A turn was answered: first its runs have ended, then it has claimed.
    pub(crate) async fn sees_turn(&mut self, store: &dyn Store, turn: &Turn, answer: &TurnAnswer) {
        let now = store.clock().now();
        for (finish, finished) in turn.finishes.iter().zip(&answer.finished) {
            if *finished == Finished::Done {
                self.freed(store, finish.lease.job, &answer.claimed).await;
                self.held(now, finish.lease.job, finish.hold);
            }
        }
        self.sees_lapses(store, &answer.claimed).await;
        let Some(claim) = turn.claim.clone() else { return };
        let jobs = answer.claimed.iter().map(|claimed| claimed.lease.job).collect();
        self.write(now, Deed::Claimed { queue: turn.queue.clone(), claim, jobs, more: answer.more });
        let leases = answer.claimed.iter().map(|claimed| claimed.lease);
        self.leases.extend(leases.map(|lease| (lease.job, (lease.run, now + LEASE))));
    }

    /// A lease has ended. Its job ended with it, or waits, or is among what was claimed since.
    async fn freed(&mut self, store: &dyn Store, job: JobId, claimed: &[Claimed]) {
        self.leases.remove(&job);
        self.write(store.clock().now(), Deed::Freed { job });
        match claimed.iter().find(|claimed| claimed.lease.job == job) {
            Some(claimed) => {
                let priority = store.job(job).await.expect("the store answers").expect("it runs").priority;
                let place = Place { priority, due: claimed.ready_at.as_millis() };
                self.waits(store.clock().now(), job, place);
            }
            None => self.sees(store, job).await,
        }
    }

    fn held(&mut self, now: Timestamp, job: JobId, hold: Option<Hold>) {
        let Some(Hold { what, length }) = hold else { return };
        let Lane { queue, task, partition } = self.lanes[&job].clone();
        let scope = match what {
            Held::Queue => Scope::Queue(queue),
            Held::Partition if !partition.is_empty() => Scope::Partition(task, partition),
            Held::Task | Held::Partition => Scope::Task(task),
        };
        self.write(now, Deed::Held { scope, until: (now + length).as_millis() });
    }

    /// Looks whether leases that are over have ended. One that is not over has not: if a store ended it all the same, the
    /// next start would be one too many.
    pub(crate) async fn sees_lapses(&mut self, store: &dyn Store, claimed: &[Claimed]) {
        let now = store.clock().now();
        let over = self.leases.iter().filter(|(_, (_, until))| *until <= now);
        let over: Vec<(JobId, u32)> = over.map(|(job, (run, _))| (*job, *run)).collect();
        for (job, run) in over {
            let seen = store.job(job).await.expect("the store answers");
            if !seen.is_some_and(|job| job.state == State::Running && job.runs == run) {
                self.freed(store, job, claimed).await;
            }
        }
    }
}
