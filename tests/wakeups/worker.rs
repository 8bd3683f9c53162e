//! A worker of a history: its room, its runs, and its wait, which is polled only when the history says so.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake as Waking, Waker};

use flexiq::internals::{Claim, Claimed, LeaseId, Name, Room, Store, Timestamp, Wait, Wake, WorkerId};

use crate::steps::{LEASE, QUEUES, TASKS, Trade, name};

/// A worker, as it knows itself.
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) trade: Trade,
    pub(crate) runs: Vec<Run>,
    pub(crate) turns: u64,
    pub(crate) wait: Option<Waiting>,
    /// The queues that it was woken for and has not claimed from.
    pub(crate) woken: Vec<usize>,
}

/// A run that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) lease: LeaseId,
    pub(crate) task: usize,
    until: Timestamp,
}

/// A wait under way, and whether it wants to be polled.
pub(crate) struct Waiting {
    wait: Pin<Box<dyn Future<Output = flexiq::Result<Wake>> + Send>>,
    flag: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Waking for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Worker {
    pub(crate) fn new(id: WorkerId, store: Arc<dyn Store>, trade: Trade) -> Self {
        Self { id, store, trade, runs: Vec::new(), turns: 0, wait: None, woken: Vec::new() }
    }

    fn free_slots(&self) -> u32 {
        self.trade.slots.saturating_sub(self.runs.len() as u32)
    }

    /// How many more of a task it could run.
    fn room(&self, task: usize) -> u32 {
        let running = self.runs.iter().filter(|run| run.task == task).count() as u32;
        if self.trade.links[task] && self.free_slots() > 0 {
            self.trade.of_one_task.saturating_sub(running)
        } else {
            0
        }
    }

    /// The tasks of a queue that it has room for.
    fn open(&self, queue: usize) -> Vec<usize> {
        (0..TASKS.len()).filter(|&task| TASKS[task].1 == queue && self.room(task) > 0).collect()
    }

    /// Whether it waits, and has room for this task.
    pub(crate) fn sleeps_for(&self, task: usize) -> bool {
        self.wait.is_some() && self.room(task) > 0
    }

    /// Whether it waits for anything in this queue.
    pub(crate) fn waits_in(&self, queue: &str) -> bool {
        self.wait.is_some() && self.hungry_for().into_iter().any(|hungry| QUEUES[hungry] == queue)
    }

    /// The queues from which it could start something.
    pub(crate) fn hungry_for(&self) -> Vec<usize> {
        (0..QUEUES.len()).filter(|&queue| !self.open(queue).is_empty()).collect()
    }

    /// As a pump does, it claims first from where it was woken: nobody else has what it popped there.
    pub(crate) fn may_claim(&self, queue: usize) -> bool {
        self.woken.is_empty() || self.woken.contains(&queue)
    }

    /// A claim of these tasks of a queue; none where it has no room for any.
    pub(crate) fn claim(&self, queue: usize, tasks: [bool; 3]) -> Option<Claim> {
        let room = |task: usize| Room {
            task: name(TASKS[task].0),
            slot: 0,
            at_most: self.room(task),
            max_losses: 3,
        };
        let open: Vec<Room> = self.open(queue).into_iter().filter(|&task| tasks[task]).map(room).collect();
        let slots = vec![self.free_slots()];
        (!open.is_empty()).then_some(Claim { slots, tasks: open, lease: LEASE })
    }

    /// Starts a run of a job; answers its task.
    pub(crate) fn start(&mut self, claimed: &Claimed) -> usize {
        let task = TASKS.iter().position(|(task, _)| *task == &*claimed.task).expect("a task of this world");
        self.runs.push(Run { lease: claimed.lease, task, until: claimed.claimed_at + LEASE });
        task
    }

    /// Gives up runs whose lease is over, as its own clock tells it; answers whether there were any.
    pub(crate) fn drop_lapsed(&mut self, now: Timestamp) -> bool {
        let before = self.runs.len();
        self.runs.retain(|run| run.until > now);
        self.runs.len() < before
    }

    /// Begins to wait for all that it has room for.
    pub(crate) fn fall_asleep(&mut self) {
        let named = |queue: usize| {
            let tasks: Arc<[Name]> = self.open(queue).into_iter().map(|task| name(TASKS[task].0)).collect();
            (name(QUEUES[queue]), tasks)
        };
        let wait = Wait { worker: self.id, queues: self.hungry_for().into_iter().map(named).collect() };
        let store = self.store.clone();
        self.wait = Some(Waiting {
            wait: Box::pin(async move { store.wait(wait).await }),
            flag: Arc::new(Flag(AtomicBool::new(true))),
        });
    }

    /// Whether its wait would go on.
    pub(crate) fn has_news(&self) -> bool {
        self.wait.as_ref().is_some_and(|waiting| waiting.flag.0.load(Ordering::SeqCst))
    }

    /// Goes on with its wait, if there is anything new; answers whether there was.
    pub(crate) fn look(&mut self) -> bool {
        if !self.has_news() {
            return false;
        }
        let Some(waiting) = &mut self.wait else { return false };
        waiting.flag.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(waiting.flag.clone());
        if let Poll::Ready(wake) = waiting.wait.as_mut().poll(&mut Context::from_waker(&waker)) {
            let wake = wake.expect("the wait is answered");
            let is_woken = |queue: &usize| wake.queues.contains(&name(QUEUES[*queue]));
            self.woken = (0..QUEUES.len()).filter(is_woken).collect();
            self.wait = None;
        }
        true
    }
}
