//! The leases that a worker holds: the pump adds and removes them, the heartbeat renews and fences them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::control::{Control, Stop};
use super::fence::Fence;
use crate::store::{Lapse, LeaseId};
use crate::task::Kind;

/// The leases that a worker holds, each until its finish is answered.
#[derive(Clone, Debug)]
pub(super) struct Leases {
    book: Arc<Mutex<Book>>,
    fence: Fence,
    nearer: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Book {
    held: HashMap<LeaseId, Held>,
    /// When the fence looks next. Only what is nearer needs to wake it.
    next_look: Option<Duration>,
}

/// A lease, and the run that goes with it.
#[derive(Debug)]
struct Held {
    control: Arc<Control>,
    kind: Kind,
    task: &'static str,
    lapse: Lapse,
    /// Another worker has the job: not renewed any more.
    is_lost: bool,
    /// The body has returned or was dropped; its finish is on the way.
    has_ended: bool,
    /// A cap counts it.
    is_capped: bool,
    /// The permits of named limits that its run holds.
    permits: usize,
    /// When its last renewal was sent, by the monotonic clock: the lease lasts at least from there.
    renewed: Duration,
    /// Whether the beat under way names it.
    is_asked: bool,
}

/// What the executor knows of a lease that it starts a run with.
#[derive(Clone, Debug)]
pub(super) struct Started {
    pub(super) control: Arc<Control>,
    pub(super) kind: Kind,
    pub(super) task: &'static str,
    pub(super) is_capped: bool,
    /// When the claim was sent, by the monotonic clock.
    pub(super) sent: Duration,
}

impl Held {
    /// Whether its run must not go on when its lease may be over: a cap counts it, or it holds permits.
    fn must_not_outlive(&self) -> bool {
        !self.has_ended && (self.is_capped || self.permits > 0)
    }
}

impl Leases {
    pub(super) fn new(lease: Duration) -> Self {
        Self { book: Arc::default(), fence: Fence::of(lease), nearer: Arc::default() }
    }

    pub(super) fn add(&self, lease: LeaseId, started: Started) {
        let Started { control, kind, task, is_capped, sent } = started;
        let held = Held {
            control,
            kind,
            task,
            lapse: Lapse::Loss,
            is_lost: false,
            has_ended: false,
            is_capped,
            permits: 0,
            renewed: sent,
            is_asked: false,
        };
        let mut book = self.lock();
        book.held.insert(lease, held);
        if is_capped {
            self.look_at(&book, sent);
        }
    }

    /// Wakes the fence for a lease that was renewed then, if it looks later.
    fn look_at(&self, book: &Book, renewed: Duration) {
        if book.next_look.is_none_or(|next| renewed + self.fence.tell < next) {
            self.nearer.notify_one();
        }
    }

    /// A run holds one permit more or less: as long as it holds any, it must not outlive its lease, with which they are
    /// renewed.
    pub(super) fn permits(&self, lease: LeaseId, more: isize) {
        let mut book = self.lock();
        let Some(held) = book.held.get_mut(&lease) else { return };
        held.permits = held.permits.saturating_add_signed(more);
        let renewed = held.renewed;
        self.look_at(&book, renewed);
    }

    /// Whether the body of this run is at work.
    pub(super) fn is_running(&self, lease: LeaseId) -> bool {
        self.lock().held.get(&lease).is_some_and(|held| !held.has_ended)
    }

    /// Stops a run at once whose permit others may hold.
    pub(super) fn fence_now(&self, lease: LeaseId) {
        if let Some(held) = self.lock().held.get(&lease) {
            held.control.drop_now(Stop::Fenced);
        }
    }

    /// The body of this run is gone. Answers whether the lease was lost before.
    pub(super) fn end(&self, lease: LeaseId) -> bool {
        let mut book = self.lock();
        let Some(held) = book.held.get_mut(&lease) else { return false };
        held.has_ended = true;
        held.is_lost
    }

    /// The finish of this run was answered.
    pub(super) fn remove(&self, lease: LeaseId) {
        self.lock().held.remove(&lease);
    }

    /// What a beat renews.
    pub(super) fn to_renew(&self) -> Vec<(LeaseId, Lapse)> {
        self.lock()
            .held
            .iter_mut()
            .filter(|(_, held)| !held.is_lost)
            .map(|(lease, held)| {
                held.is_asked = true;
                (*lease, held.lapse)
            })
            .collect()
    }

    /// The leases that were last named by [`to_renew`](Self::to_renew) were renewed by a beat that was sent then.
    pub(super) fn renewed(&self, sent: Duration) {
        for held in self.lock().held.values_mut().filter(|held| held.is_asked) {
            (held.is_asked, held.renewed) = (false, held.renewed.max(sent));
        }
    }

    /// Tells the runs that must not outlive their lease and whose lease comes near its end, and drops those that come nearer. Answers
    /// when to look again. One that was told and then renewed after all is not dropped.
    pub(super) fn fence(&self, now: Duration) -> Option<Duration> {
        let mut book = self.lock();
        let mut next: Option<Duration> = None;
        for held in book.held.values().filter(|held| held.must_not_outlive()) {
            let (tell, drop) = (held.renewed + self.fence.tell, held.renewed + self.fence.drop);
            if drop <= now {
                held.control.drop_now(Stop::Fenced);
                continue;
            }
            if tell <= now {
                held.control.stop(Stop::Fenced);
            }
            let look = if tell <= now { drop } else { tell };
            next = Some(next.map_or(look, |next| next.min(look)));
        }
        book.next_look = next;
        next
    }

    /// Waits until a lease comes that the fence must look at earlier than it knows.
    pub(super) async fn nearer(&self) {
        self.nearer.notified().await;
    }

    /// Tells a run that its lease is another worker's.
    pub(super) fn lose(&self, lease: LeaseId) {
        if let Some(held) = self.lock().held.get_mut(&lease) {
            held.is_lost = true;
            held.control.drop_now(Stop::LeaseLost);
        }
    }

    /// Tells a run that its job was cancelled.
    pub(super) fn cancel(&self, lease: LeaseId) {
        if let Some(held) = self.lock().held.get(&lease) {
            held.control.stop(Stop::Cancelled);
        }
    }

    /// Tells every run that the grace is over. From now on their leases lapse as releases: whatever keeps them from
    /// being finished is no fault of their jobs.
    pub(super) fn shut_down(&self) {
        for held in self.lock().held.values_mut() {
            held.lapse = Lapse::Release;
            held.control.stop(Stop::Shutdown);
        }
    }

    /// Task names of the plain functions that are still running.
    pub(super) fn running_plain(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self
            .lock()
            .held
            .values()
            .filter(|held| held.kind == Kind::Plain && !held.has_ended)
            .map(|held| held.task)
            .collect();
        names.sort_unstable();
        names
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // Each change above is one assignment or call: a poisoned lock hides nothing half done.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;

    const LEASE: Duration = Duration::from_secs(10);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A run whose claim was sent at the beginning.
    fn start(leases: &Leases, is_capped: bool) -> (LeaseId, Arc<Control>) {
        let (lease, control) = (LeaseId { job: JobId::new(), run: 1 }, Arc::new(Control::default()));
        let started =
            Started { control: control.clone(), kind: Kind::Async, task: "t", is_capped, sent: ms(0) };
        leases.add(lease, started);
        (lease, control)
    }

    async fn is_dropped(control: &Control) -> bool {
        tokio::select! {
            biased;
            () = control.over() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn a_run_that_must_not_outlive_its_lease_is_told_two_seconds_before_it_can_end_and_dropped_one_before()
     {
        let leases = Leases::new(LEASE);
        let (_, capped) = start(&leases, true);
        let (holder, holds) = start(&leases, false);
        leases.permits(holder, 1);
        assert_eq!(leases.fence(ms(7_999)), Some(ms(8_000)));
        assert_eq!([capped.reason(), holds.reason()], [None; 2]);
        assert_eq!(leases.fence(ms(8_000)), Some(ms(9_000)));
        assert_eq!([capped.reason(), holds.reason()], [Some(Stop::Fenced); 2]);
        assert_eq!(leases.fence(ms(8_999)), Some(ms(9_000)));
        assert!(!is_dropped(&capped).await && !is_dropped(&holds).await, "they have a moment to end");
        assert_eq!(leases.fence(ms(9_000)), None);
        assert!(is_dropped(&capped).await && is_dropped(&holds).await);
    }

    #[tokio::test]
    async fn a_run_that_nothing_counts_goes_on_without_its_lease() {
        let leases = Leases::new(LEASE);
        let (_, free) = start(&leases, false);
        let (giver, gave) = start(&leases, false);
        leases.permits(giver, 1);
        leases.permits(giver, -1);
        let (ended, over) = start(&leases, true);
        leases.end(ended);
        assert_eq!(leases.fence(ms(60_000)), None);
        assert_eq!([free.reason(), gave.reason(), over.reason()], [None; 3]);
    }

    #[tokio::test]
    async fn a_lease_that_is_renewed_is_counted_from_when_that_was_sent() {
        let leases = Leases::new(LEASE);
        let (_, capped) = start(&leases, true);
        leases.to_renew();
        let (_, later) = start(&leases, true);
        leases.renewed(ms(3_000));
        assert_eq!(leases.fence(ms(10_999)), Some(ms(11_000)), "one that was not named is not renewed");
        assert_eq!([capped.reason(), later.reason()], [None, Some(Stop::Fenced)]);
        assert!(is_dropped(&later).await);
    }
}
