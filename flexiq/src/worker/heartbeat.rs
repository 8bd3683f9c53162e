//! The worker's sign of life, on a thread of its own: renews leases whatever the tasks do to the runtime.
//!
//! It also brings home what a stopped worker leaves: plain functions that cannot be stopped keep their leases for as
//! long as they run and the process lives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::away::{Away, Tries};
use super::fence;
use super::health::Pulse;
use super::leases::Leases;
use super::notes::Notes;
use super::permits::Permits;
use super::pump::Pump;
use super::tally::Tally;
use super::ticks::Ticks;
use super::watch;
use crate::clock::Clock;
use crate::error::{Effect, Error, Result};
use crate::store::{Beat, Hello, Store, WorkerId};

/// The heartbeat's thread, seen from the pump's side. Dropping it stops the beats and lets the leases lapse as releases.
#[derive(Debug)]
pub(super) struct Heartbeat {
    last: mpsc::Sender<LastBeat>,
}

/// The worker stops: one more beat marks what is left, and then `told`.
#[derive(Debug)]
struct LastBeat {
    rest: Option<Box<Pump>>,
    told: oneshot::Sender<()>,
}

/// What the thread does its work with.
#[derive(Debug)]
pub(super) struct Beater {
    pub(super) store: Arc<dyn Store>,
    pub(super) worker: WorkerId,
    pub(super) hello: Hello,
    pub(super) leases: Leases,
    pub(super) permits: Permits,
    pub(super) ticks: Ticks,
    pub(super) notes: Notes,
    pub(super) lease: Duration,
    pub(super) every: Duration,
    /// When the worker was registered, by the monotonic clock: its first sign of life.
    pub(super) registered: Duration,
    pub(super) away: Arc<Away>,
    /// Marked whenever a beat was answered or has failed: a store that is away is no fault of the heartbeat.
    pub(super) pulse: Arc<Pulse>,
    pub(super) tally: Tally,
    /// The report that the store has.
    pub(super) told: Mutex<Option<String>>,
}

impl Heartbeat {
    /// Starts the thread.
    pub(super) fn start(beater: Beater) -> Result<Self> {
        let (last, orders) = mpsc::channel(1);
        let place = beater.store.place().to_owned();
        let refused = |error: std::io::Error| Error::StoreUnavailable {
            store: place,
            effect: Effect::None,
            reason: "the system gives the worker's heartbeat no thread".into(),
            source: Some(Box::new(error)),
        };
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return Err(refused(error)),
        };
        thread::Builder::new()
            .name("flexiq-heartbeat".into())
            .spawn(move || runtime.block_on(beater.run(orders)))
            .map_err(refused)?;
        Ok(Self { last })
    }

    /// Beats once more, retires the worker, and lets `rest` be brought home by the thread.
    pub(super) async fn finish(self, rest: Option<Box<Pump>>) {
        let (told, done) = oneshot::channel();
        if self.last.send(LastBeat { rest, told }).await.is_ok() {
            let _ = done.await;
        }
    }
}

impl Beater {
    async fn run(self, mut orders: mpsc::Receiver<LastBeat>) {
        let last = tokio::select! {
            () = self.beat_for_ever() => unreachable!("it beats for ever"),
            () = fence::keep(&self.leases, self.store.clock()) => unreachable!("it fences for ever"),
            () = self.permits.keep() => unreachable!("it gives back for ever"),
            () = self.ticks.keep() => unreachable!("it sends ticks for ever"),
            () = watch::keep(&*self.store) => unreachable!("it watches for ever"),
            () = self.notes.keep() => unreachable!("it tells for ever"),
            last = orders.recv() => last,
        };
        // Without an order the runtime of the worker is gone, and its async runs with it.
        self.leases.shut_down();
        let rest = self.last_beat().await;
        if let Some(LastBeat { rest: Some(pump), told }) = last {
            let _ = told.send(());
            tokio::select! {
                () = pump.bring_home() => {}
                () = self.beat_for_ever() => {}
                () = fence::keep(&self.leases, self.store.clock()) => {}
                () = self.permits.keep() => {}
                () = self.ticks.keep() => {}
                () = self.notes.keep() => {}
            }
            let _ = self.store.retire(self.worker).await;
        } else {
            if rest.is_ok() {
                let _ = self.store.retire(self.worker).await;
            }
            drop(last);
        }
    }

    async fn beat_for_ever(&self) {
        let clock: &Clock = self.store.clock();
        let (mut tries, mut calls) = (Tries::new(&self.away), Tries::of_wait(&self.away));
        // Counted from before a beat is sent, as its leases are.
        let mut last = self.registered;
        loop {
            let called = async {
                calls.ready(clock).await;
                self.store.called(self.worker).await
            };
            let called = tokio::select! {
                biased;
                () = clock.reach(last + self.every) => None,
                called = called => Some(called),
            };
            match called {
                Some(Ok(())) => calls.answered(),
                Some(Err(error)) => {
                    calls.failed(&error, clock);
                    continue;
                }
                None => {}
            }
            let sent = clock.elapsed();
            let beaten = self.beat().await;
            self.pulse.beat(clock.elapsed());
            match beaten {
                Ok(()) => {
                    last = sent;
                    tries.answered();
                }
                Err(error) => {
                    tries.failed(&error, clock);
                    tries.ready(clock).await;
                }
            }
        }
    }

    /// Renews the leases, and tells the runs whose lease is lost or whose job was cancelled.
    async fn beat(&self) -> Result<()> {
        let sent = self.store.clock().elapsed();
        let permits = self.permits.to_renew();
        let beat = Beat {
            worker: self.worker,
            lease: self.lease,
            every: self.every,
            leases: self.leases.to_renew(),
            permits: permits.iter().map(|(permit, _)| permit.clone()).collect(),
            report: self.news(),
        };
        let report = beat.report.clone();
        let answer = self.store.extend(beat).await?;
        self.has_told(report, answer.is_unknown);
        self.leases.renewed(sent);
        self.ticks.told(answer.ticks);
        answer.lost.into_iter().for_each(|lease| self.leases.lose(lease));
        answer.cancelled.into_iter().for_each(|lease| self.leases.cancel(lease));
        for (permit, number) in permits.iter().filter(|(permit, _)| answer.lapsed.contains(permit)) {
            if let Some(number) = number {
                self.permits.lapsed(permit, *number);
            }
        }
        if answer.is_unknown {
            // The store has lost it, or it was silent for too long.
            self.store.register(self.hello.clone()).await?;
        }
        Ok(())
    }

    /// What the worker does, where that is not what the store has.
    fn news(&self) -> Option<String> {
        let report = self.tally.report().into_text();
        (self.told().as_ref() != Some(&report)).then_some(report)
    }

    /// The store has what was reported; one that does not know the worker has nothing.
    fn has_told(&self, report: Option<String>, is_unknown: bool) {
        let mut told = self.told();
        if is_unknown {
            *told = None;
        } else if report.is_some() {
            *told = report;
        }
    }

    fn told(&self) -> MutexGuard<'_, Option<String>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The beat that marks what is left. Nobody waits long for it: the leases lapse in any case.
    async fn last_beat(&self) -> Result<()> {
        let last = async {
            // What cannot be given back lapses.
            self.permits.send().await?;
            self.beat().await?;
            // What is not sent, another worker is told of only after a while.
            self.ticks.send().await;
            Ok(())
        };
        tokio::select! {
            last = last => last,
            () = tokio::time::sleep(Duration::from_secs(1)) => Err(Error::StoreUnavailable {
                store: self.store.place().to_owned(),
                effect: Effect::Unknown,
                reason: "it did not answer the worker's last beat".into(),
                source: None,
            }),
        }
    }
}
