//! Every gate, wherever it may stand, shut and opened again: for tests that hold for all of them.

use flexiq::internals::{Change, Claimed, Due, Finish, Held, Hold, Scope, Transition};
use flexiq::{DeadReason, ScheduledReason};

use crate::harness::*;

/// The task of these tests; its jobs are of the partition [`PARTITION`] of the queue "q".
pub(crate) const TASK: &str = "shut";
pub(crate) const PARTITION: &str = "a";

/// How long a rate is spent and a hold lasts.
pub(crate) const CLOSED: std::time::Duration = secs(60);

/// Where a limit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Queue,
    Task,
    Partition,
}

impl Place {
    pub(crate) const ALL: [Self; 3] = [Self::Queue, Self::Task, Self::Partition];

    pub(crate) async fn set(self, bench: &Bench, change: Change) {
        let scope = match self {
            Self::Queue => Scope::Queue(name("q")),
            Self::Task => Scope::Task(name(TASK)),
            Self::Partition => Scope::Partition(name(TASK), PARTITION.into()),
        };
        bench.store.limit(scope, change).await.expect("the limit is set");
    }

    fn held(self) -> Held {
        match self {
            Self::Queue => Held::Queue,
            Self::Task => Held::Task,
            Self::Partition => Held::Partition,
        }
    }
}

/// What keeps jobs waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Cap,
    Rate,
    Pause,
    Hold,
}

/// Every gate at each of these places.
pub(crate) fn gates(places: &[Place]) -> Vec<(Gate, Place)> {
    let gates = [Gate::Cap, Gate::Rate, Gate::Pause, Gate::Hold];
    gates.into_iter().flat_map(|gate| places.iter().map(move |&place| (gate, place))).collect()
}

/// A gate that is shut.
#[derive(Debug)]
pub(crate) struct Shut {
    gate: Gate,
    place: Place,
    /// What fills the cap.
    holder: Option<Claimed>,
}

impl Shut {
    /// Shuts a gate of an empty queue.
    pub(crate) async fn shut(bench: &Bench, gate: Gate, place: Place) -> Self {
        let holder = match gate {
            Gate::Cap => {
                place.set(bench, Change::MaxConcurrent(Some(1))).await;
                Some(started(bench).await)
            }
            Gate::Rate => {
                place.set(bench, Change::Rates(Some(rates("1/m")))).await;
                let run = started(bench).await;
                bench.finish(bench.living, run.lease, succeed()).await;
                None
            }
            Gate::Pause => {
                place.set(bench, Change::Paused(true)).await;
                None
            }
            Gate::Hold => {
                let hold = Some(Hold { what: place.held(), length: CLOSED });
                let finish = Finish { hold, ..Finish::new(started(bench).await.lease, succeed()) };
                bench.turn(bench.living, vec![finish], None).await;
                None
            }
        };
        Self { gate, place, holder }
    }

    /// What opens it happens.
    pub(crate) async fn open(&mut self, bench: &Bench) {
        match self.gate {
            Gate::Cap => {
                let holder = self.holder.take().expect("a cap is opened once");
                bench.finish(bench.living, holder.lease, succeed()).await;
            }
            Gate::Rate | Gate::Hold => bench.hands.advance(CLOSED),
            Gate::Pause => self.place.set(bench, Change::Paused(false)).await,
        }
    }

    /// Takes it away, with all that there is of the task and with all that time was to open.
    pub(crate) async fn clear(mut self, bench: &Bench, held: Vec<Claimed>) {
        if self.holder.is_some() {
            self.open(bench).await;
        }
        for change in [Change::MaxConcurrent(None), Change::Rates(None), Change::Paused(false)] {
            self.place.set(bench, change).await;
        }
        sweep(bench, held).await;
        bench.pass(CLOSED).await;
        assert!(bench.claim(bench.living, &[TASK], 9).await.is_empty());
    }
}

/// A job that was enqueued and is claimed.
async fn started(bench: &Bench) -> Claimed {
    bench.enqueue(job_of(TASK, PARTITION)).await;
    bench.claim(bench.living, &[TASK], 1).await.remove(0)
}

/// Every way a run ends that its worker can say. A job that goes on is due in an hour, or now.
pub(crate) fn every_end() -> Vec<Transition> {
    let reasons = [ScheduledReason::Retry, ScheduledReason::Deferral];
    let scheduled = reasons.into_iter().flat_map(|reason| {
        [0, 3_600].map(|seconds| Transition::Schedule { reason, due: Due::In(secs(seconds)), error: None })
    });
    let reasons = [
        DeadReason::Failures,
        DeadReason::Never,
        DeadReason::Deferrals,
        DeadReason::Losses,
        DeadReason::Decode,
    ];
    let killed = reasons.into_iter().map(|reason| Transition::Kill { reason, error: None });
    let others = [succeed(), Transition::PutBack, Transition::Release, Transition::Cancel];
    scheduled.chain(killed).chain(others).collect()
}

/// How many jobs of the task hold a lease.
pub(crate) async fn running(bench: &Bench) -> u64 {
    bench.counts(TASK).await.running
}

/// Ends all that there is of the task: what runs for the living worker, and what waits.
pub(crate) async fn sweep(bench: &Bench, held: Vec<Claimed>) {
    bench.turn(bench.living, finish_all(&held), None).await;
    while bench.store.cancel_partition(name(TASK), PARTITION.into()).await.expect("answers").more {}
    assert_eq!((bench.counts(TASK).await.pending(), running(bench).await), (0, 0));
}
