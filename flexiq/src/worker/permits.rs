//! The permits of named limits that a worker's runs hold: asked for by their bodies, given back when they are dropped or
//! their run ends, renewed with the leases.
//!
//! What is given back is sent by the heartbeat's thread, so that a body need not wait for it and a runtime that is being
//! dropped does not lose it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::away::{Away, Tries};
use super::leases::Leases;
use crate::clock::Timestamp;
use crate::job::Due;
use crate::name::Name;
use crate::store::{Ask, Asked, GiveBack, LeaseId, PermitId, Store};
use crate::task::{Asking, GivesBack, Grants, Retry, Returning, Wanted};

/// The permits that a worker's runs hold.
#[derive(Clone)]
pub(super) struct Permits(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    away: Arc<Away>,
    leases: Leases,
    /// How long a permit lasts without a beat, as a lease does.
    lease: Duration,
    book: Mutex<Book>,
    /// Something is to be given back,
    came: Notify,
    /// or has been.
    went: Notify,
}

#[derive(Default)]
struct Book {
    /// By run, limit and key.
    held: HashMap<LeaseId, HashMap<(Name, String), Held>>,
    /// What is given back and not yet answered. A run that wants it again waits.
    returning: HashMap<PermitId, GiveBack>,
    /// Counts permits, so that one is never taken for another of the same run and key.
    number: u64,
}

/// A permit that was asked for.
struct Held {
    number: u64,
    ask: Ask,
    is_granted: bool,
    /// The body may hold it more than once.
    holders: usize,
}

impl Permits {
    pub(super) fn new(store: Arc<dyn Store>, away: Arc<Away>, leases: Leases, lease: Duration) -> Self {
        let (book, came, went) = Default::default();
        Self(Arc::new(Shared { store, away, leases, lease, book, came, went }))
    }

    /// Grants permits to one run.
    pub(super) fn of_run(&self, lease: LeaseId, queue: &Name, ready_at: Timestamp) -> Arc<dyn Grants> {
        Arc::new(OfRun { permits: self.clone(), lease, queue: queue.clone(), ready_at })
    }

    /// Gives back what a run that has ended still holds.
    pub(super) fn end(&self, lease: LeaseId) {
        let mut book = self.lock();
        let Some(left) = book.held.remove(&lease) else { return };
        for held in left.into_values() {
            self.give_back(&mut book, held, None);
        }
    }

    /// What a beat renews: also what is asked for, for its answer may be on the way. With the number of each that was
    /// granted.
    pub(super) fn to_renew(&self) -> Vec<(PermitId, Option<u64>)> {
        let book = self.lock();
        let all = book.held.values().flat_map(HashMap::values);
        all.map(|held| (held.ask.permit.clone(), held.is_granted.then_some(held.number))).collect()
    }

    /// A beat has learned that a permit is not held any more: others may be at work with it, so its run must stop.
    pub(super) fn lapsed(&self, permit: &PermitId, number: u64) {
        if self.lock().take(permit, number).is_some() {
            self.0.leases.fence_now(permit.lease);
        }
    }

    /// Sends what is given back, for ever.
    pub(super) async fn keep(&self) {
        let mut tries = Tries::new(&self.0.away);
        loop {
            match self.send().await {
                Ok(0) => self.0.came.notified().await,
                Ok(_) => tries.answered(),
                Err(error) => {
                    tries.failed(&error, self.0.store.clock());
                    tries.ready(self.0.store.clock()).await;
                }
            }
        }
    }

    /// Sends what is given back, once; answers how many permits those were.
    pub(super) async fn send(&self) -> crate::Result<usize> {
        let batch: Vec<GiveBack> = self.lock().returning.values().cloned().collect();
        if batch.is_empty() {
            return Ok(0);
        }
        self.0.store.give_back(batch.clone()).await?;
        let mut book = self.lock();
        for sent in &batch {
            book.returning.remove(&sent.ask.permit);
        }
        drop(book);
        self.0.went.notify_waiters();
        Ok(batch.len())
    }

    /// Waits until everything that was given back is back.
    pub(super) async fn settled(self) {
        loop {
            let mut went = std::pin::pin!(self.0.went.notified());
            // Heard from here on, not from when it is polled.
            went.as_mut().enable();
            if self.lock().returning.is_empty() {
                return;
            }
            went.await;
        }
    }

    fn give_back(&self, book: &mut Book, held: Held, hold: Option<Duration>) {
        if held.is_granted {
            self.0.leases.permits(held.ask.permit.lease, -1);
        }
        book.returning.insert(held.ask.permit.clone(), GiveBack { ask: held.ask, hold });
        self.0.came.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while it is held but an allocation that fails.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn find(&mut self, permit: &PermitId, number: u64) -> Option<&mut Held> {
        let of_run = self.held.get_mut(&permit.lease)?;
        of_run.get_mut(&(permit.limit.clone(), permit.key.clone())).filter(|held| held.number == number)
    }

    fn take(&mut self, permit: &PermitId, number: u64) -> Option<Held> {
        self.find(permit, number)?;
        let of_run = self.held.get_mut(&permit.lease)?;
        let held = of_run.remove(&(permit.limit.clone(), permit.key.clone()));
        if of_run.is_empty() {
            self.held.remove(&permit.lease);
        }
        held
    }
}

/// Grants permits to one run.
#[derive(Debug)]
struct OfRun {
    permits: Permits,
    lease: LeaseId,
    queue: Name,
    ready_at: Timestamp,
}

impl Grants for OfRun {
    fn acquire(&self, wanted: Wanted) -> Asking<'_> {
        let Wanted { name, key, max_concurrent, rates } = wanted;
        let permit = PermitId { limit: name, key, lease: self.lease };
        let lease = self.permits.0.lease;
        let (queue, ready_at) = (self.queue.clone(), self.ready_at);
        let ask = Ask { permit, queue, ready_at, max_concurrent, rates, lease };
        Box::pin(self.permits.acquire(ask))
    }
}

impl Permits {
    async fn acquire(&self, ask: Ask) -> Result<GivesBack, Retry> {
        let taken = loop {
            match self.enter(&ask) {
                Some(taken) => break taken,
                None => self.is_back(&ask.permit).await,
            }
        };
        let mut tries = Tries::new(&self.0.away);
        loop {
            // Looked at after it was entered, so that the end of the run gives back what comes later.
            if !self.0.leases.is_running(ask.permit.lease) {
                taken.forget();
                return Err(Retry::never("this run has ended: it can hold no permit"));
            }
            match self.0.store.acquire(ask.clone()).await {
                Ok(Asked::Granted) => {
                    tries.answered();
                    taken.is_granted();
                    return Ok(Box::new(move |hold| taken.give_back(hold)));
                }
                Ok(Asked::Refused { due }) => {
                    tries.answered();
                    taken.forget();
                    return Err(Retry::limited(Due::At(due)));
                }
                Err(error) => tries.failed(&error, self.0.store.clock()),
            }
            tries.ready(self.0.store.clock()).await;
        }
    }

    /// Waits until what the same run has given back is back.
    async fn is_back(&self, permit: &PermitId) {
        loop {
            let mut went = std::pin::pin!(self.0.went.notified());
            // Heard from here on, not from when it is polled.
            went.as_mut().enable();
            if !self.lock().returning.contains_key(permit) {
                return;
            }
            went.await;
        }
    }

    /// Notes that a permit is asked for; `None` while the same run gives the same one back.
    fn enter(&self, ask: &Ask) -> Option<Taken> {
        let mut book = self.lock();
        let permit = ask.permit.clone();
        if book.returning.contains_key(&permit) {
            return None;
        }
        let next = book.number + 1;
        let of_run = book.held.entry(permit.lease).or_default();
        let new = || Held { number: next, ask: ask.clone(), is_granted: false, holders: 0 };
        let held = of_run.entry((permit.limit.clone(), permit.key.clone())).or_insert_with(new);
        held.holders += 1;
        let number = held.number;
        book.number = next;
        Some(Taken { permits: self.clone(), permit, number, is_over: false })
    }
}

/// One holding of a permit, from before it is asked for. Dropping it gives it back, for the answer may be lost.
struct Taken {
    permits: Permits,
    permit: PermitId,
    number: u64,
    is_over: bool,
}

impl Taken {
    fn is_granted(&self) {
        if let Some(held) = self.permits.lock().find(&self.permit, self.number)
            && !std::mem::replace(&mut held.is_granted, true)
        {
            self.permits.0.leases.permits(self.permit.lease, 1);
        }
    }

    /// It was not granted.
    fn forget(mut self) {
        self.is_over = true;
        let mut book = self.permits.lock();
        let Some(held) = book.find(&self.permit, self.number) else { return };
        held.holders -= 1;
        if held.holders == 0 {
            book.take(&self.permit, self.number);
        }
    }

    fn give_back(mut self, hold: Option<Duration>) -> Returning {
        self.end(hold);
        let (permits, permit) = (self.permits.clone(), self.permit.clone());
        Box::pin(async move { permits.is_back(&permit).await })
    }

    fn end(&mut self, hold: Option<Duration>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let mut book = self.permits.lock();
        let Some(held) = book.find(&self.permit, self.number) else { return };
        held.holders -= 1;
        if held.holders == 0 || hold.is_some() {
            let Some(held) = book.take(&self.permit, self.number) else { return };
            self.permits.give_back(&mut book, held, hold);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits").finish_non_exhaustive()
    }
}
