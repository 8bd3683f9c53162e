//! What tests of named limits say: runs that ask for permits, give them back, and wait in line.

use flexiq::JobId;
use flexiq::State;
use flexiq::internals::{
    Ask, Asked, Beat, BeatAnswer, Due, Finished, GiveBack, Lapse, LeaseId, PermitId, ScheduledReason,
    Timestamp, Transition,
};

use crate::harness::*;

/// A permit of the limit "api".
pub(crate) fn permit(lease: LeaseId) -> PermitId {
    PermitId { limit: name("api"), key: String::new(), lease }
}

/// Asks for one of so many permits of the limit "api".
pub(crate) fn one_of(permits: u32, lease: LeaseId) -> Ask {
    Ask {
        permit: permit(lease),
        queue: name("q"),
        ready_at: START,
        max_concurrent: Some(permits),
        rates: Vec::new(),
        lease: LEASE,
    }
}

/// Asks for a permit of the limit "api", of which so many are granted in a time.
pub(crate) fn at_rate(rate: &str, lease: LeaseId) -> Ask {
    Ask { max_concurrent: None, rates: rates(rate), ..one_of(1, lease) }
}

/// The same of another key of the limit.
pub(crate) fn of_key(key: &str, ask: Ask) -> Ask {
    Ask { permit: PermitId { key: key.into(), ..ask.permit }, ..ask }
}

impl Bench {
    /// So many runs under way, of jobs of the task "call" of which nothing else is ready.
    pub(crate) async fn runs(&self, most: usize) -> Vec<LeaseId> {
        self.enqueue_many("q", jobs("call", most)).await;
        self.come(most).await
    }

    /// The runs of what is ready of the task "call", best first, and at most so many.
    pub(crate) async fn come(&self, most: usize) -> Vec<LeaseId> {
        let most = u32::try_from(most).expect("tests claim few jobs");
        let claimed = self.claim(self.living, &["call"], most).await;
        claimed.iter().map(|claimed| claimed.lease).collect()
    }

    pub(crate) async fn acquire(&self, ask: &Ask) -> Asked {
        self.store.acquire(ask.clone()).await.expect("the ask is answered")
    }

    pub(crate) async fn is_granted(&self, ask: &Ask) -> bool {
        self.acquire(ask).await == Asked::Granted
    }

    /// Asks for what is refused; answers when the job is due.
    pub(crate) async fn refused(&self, ask: &Ask) -> Timestamp {
        match self.acquire(ask).await {
            Asked::Refused { due } => due,
            Asked::Granted => panic!("it was granted"),
        }
    }

    /// A run asks for what it is refused, and ends: its job waits in line.
    pub(crate) async fn stand_in_line(&self, ask: &Ask) -> Timestamp {
        let due = self.refused(ask).await;
        assert_eq!(self.end_in_line(ask.permit.lease, due).await, Finished::Done);
        due
    }

    /// Ends a run that was refused and told when its job is due.
    pub(crate) async fn end_in_line(&self, lease: LeaseId, due: Timestamp) -> Finished {
        let wait = Transition::Schedule { reason: ScheduledReason::Limit, due: Due::At(due), error: None };
        self.finish(self.living, lease, wait).await
    }

    /// A run gives its permit back and has done its work.
    pub(crate) async fn succeeds(&self, ask: &Ask) {
        self.give_back(ask).await;
        self.finish(self.living, ask.permit.lease, succeed()).await;
    }

    pub(crate) async fn give_back(&self, ask: &Ask) {
        let given = GiveBack { ask: ask.clone(), hold: None };
        self.store.give_back(vec![given]).await.expect("it is given back");
    }

    /// Gives a permit back, and lets nobody have one for so many seconds.
    pub(crate) async fn give_back_and_hold(&self, ask: &Ask, seconds: u64) {
        let given = GiveBack { ask: ask.clone(), hold: Some(secs(seconds)) };
        self.store.give_back(vec![given]).await.expect("it is given back");
    }

    /// A beat of the living worker that names leases, and permits of the limit "api".
    pub(crate) async fn beat_for(&self, leases: &[LeaseId], permits: &[LeaseId]) -> BeatAnswer {
        let leases = leases.iter().map(|&lease| (lease, Lapse::Loss)).collect();
        let permits = permits.iter().map(|&lease| permit(lease)).collect();
        let beat = Beat { worker: self.living, lease: LEASE, every: BEAT, leases, permits, report: None };
        self.store.extend(beat).await.expect("the beat is answered")
    }

    /// Whether a job was called: it is ready, or runs.
    pub(crate) async fn is_called(&self, id: JobId) -> bool {
        match self.state(id).await {
            State::Ready => true,
            State::Scheduled(ScheduledReason::Limit) => false,
            other => panic!("it neither waits in line nor was called, but is {other:?}"),
        }
    }

    /// When a job is due.
    pub(crate) async fn due(&self, id: JobId) -> Timestamp {
        self.job(id).await.due_at.into()
    }
}
