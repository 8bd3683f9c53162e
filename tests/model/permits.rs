//! What the runs of a history do about named limits: they ask, are told to wait, and give back. Whatever the model says,
//! no more are granted at once, or in a period, than was asked with.

use std::collections::HashMap;

use flexiq::internals::{Ask, Asked, GiveBack, LeaseId, PermitId, RESERVED, Timestamp, fallback, longest};
use proptest::test_runner::TestCaseError;

use crate::fleet::pick_of;
use crate::limits::name;
use crate::named::{Given, What, Wish};
use crate::play::{Play, Played};
use crate::steps::{LEASE, Lease, QUEUES};

/// What is known of permits, as those who asked know it.
#[derive(Default)]
pub(crate) struct Permits {
    /// All that was ever asked.
    asked: Vec<Ask>,
    /// What is believed to be held, and until when it is so for sure.
    held: Vec<(Ask, Timestamp)>,
    /// Every grant that a rate counts, with its moment: it never goes back.
    starts: Vec<(Ask, Timestamp)>,
    /// When a run that was refused was told to come.
    told: HashMap<LeaseId, Timestamp>,
    /// When a permit that was reserved may lapse.
    lapses: Vec<Timestamp>,
}

impl Permits {
    /// When a run was told to come.
    pub(crate) fn told(&self, lease: LeaseId) -> Option<Timestamp> {
        self.told.get(&lease).copied()
    }

    /// The permits of these runs.
    pub(crate) fn of_runs(&self, leases: &[LeaseId]) -> Vec<PermitId> {
        let of_these = self.held.iter().filter(|(ask, _)| leases.contains(&ask.permit.lease));
        of_these.map(|(ask, _)| ask.permit.clone()).collect()
    }

    /// A beat has renewed these, but for those that have lapsed.
    pub(crate) fn renewed(&mut self, permits: &[PermitId], lapsed: &[PermitId], now: Timestamp) {
        self.held.retain(|(ask, _)| !lapsed.contains(&ask.permit));
        let renewed = self.held.iter_mut().filter(|(ask, _)| permits.contains(&ask.permit));
        renewed.for_each(|(_, until)| *until = now + LEASE);
        self.look(now);
    }

    /// What may have lapsed by now is not held for sure any more, also when the clock goes back.
    pub(crate) fn look(&mut self, now: Timestamp) {
        let lapsing = self.held.iter_mut().filter(|(_, until)| *until <= now);
        lapsing.for_each(|(_, until)| *until = Timestamp::from_millis(i64::MIN));
        // What has left its windows may be forgotten: a clock that goes back does not bring it back.
        self.starts.retain(|(start, at)| *at + longest(&start.rates) > now);
    }

    /// Moments at which something may lapse.
    pub(crate) fn moments(&self) -> impl Iterator<Item = Timestamp> {
        self.held.iter().map(|(_, until)| *until).chain(self.lapses.iter().copied())
    }

    /// Notes a grant, and looks whether it was one too many.
    fn granted(&mut self, ask: &Ask, now: Timestamp) -> Played {
        // It may be the one that its run has, which is not made longer by asking.
        if self.held.iter().any(|(held, _)| held.permit == ask.permit) {
            return Ok(());
        }
        let is_same = |other: &Ask| is_of_one_key(other, ask);
        let held = self.held.iter().filter(|(held, until)| is_same(held) && *until > now).count();
        if ask.max_concurrent.is_some_and(|most| held >= most as usize) {
            return Err(TestCaseError::fail(format!("{held} are held, and one more is granted: {ask:?}")));
        }
        self.held.push((ask.clone(), now + LEASE));
        if ask.rates.is_empty() {
            return Ok(());
        }
        let before = self.starts.iter().filter(|(start, _)| is_same(start)).map(|(_, at)| *at).max();
        let at = before.map_or(now, |before| before.max(now));
        self.starts.push((ask.clone(), at));
        for rate in &ask.rates {
            // What was asked for with shorter periods alone may be forgotten by now.
            let counts = |(start, when): &&(Ask, Timestamp)| {
                is_same(start) && longest(&start.rates) >= rate.period && *when + rate.period > at
            };
            let starts = self.starts.iter().filter(counts).count();
            if starts > rate.starts as usize {
                return Err(TestCaseError::fail(format!("{starts} in a period of {rate:?}")));
            }
        }
        Ok(())
    }
}

fn is_of_one_key(one: &Ask, other: &Ask) -> bool {
    one.permit.limit == other.permit.limit && one.permit.key == other.permit.key
}

impl Play {
    pub(crate) async fn acquire(
        &mut self,
        worker: usize,
        queue: usize,
        lease: &Lease,
        wish: &Wish,
    ) -> Played {
        let (worker, queue) = self.busy(worker, queue);
        let Some(lease) = self.lease_of(worker, queue, lease) else { return Ok(()) };
        let queue = self.jobs.get(&lease.job).map_or(QUEUES[queue], |job| &job.queue);
        let ask = wish.of(lease, name(queue));
        let now = self.now();
        let no_sooner = now + fallback(0, None, &[]);
        let alike = |asked| match asked {
            Asked::Refused { due } if due >= no_sooner => Asked::Refused { due: no_sooner },
            other => other,
        };
        let asked = self.sides.ask_alike("acquire", |store| store.acquire(ask.clone()), alike).await?;
        self.permits.asked.push(ask.clone());
        self.permits.lapses.push(now + RESERVED);
        match asked {
            Ok(Asked::Granted) => self.permits.granted(&ask, now),
            Ok(Asked::Refused { due }) => {
                self.permits.told.insert(lease, due);
                Ok(())
            }
            Err(refusal) => Err(TestCaseError::fail(format!("an ask is refused: {refusal:?}"))),
        }
    }

    pub(crate) async fn give_back(&mut self, given: &[Given]) -> Played {
        let ask_of = |what: &What| match what {
            What::Held(of) => pick_of(&self.permits.held, of).map(|(ask, _)| ask),
            What::Any(of) => pick_of(&self.permits.asked, of),
        };
        let permits: Vec<GiveBack> = given
            .iter()
            .filter_map(|Given { what, hold }| Some(GiveBack { ask: ask_of(what)?.clone(), hold: *hold }))
            .collect();
        drop(self.sides.ask("give_back", |store| store.give_back(permits.clone())).await?);
        let is_given = |permit: &PermitId| permits.iter().any(|given| given.ask.permit == *permit);
        self.permits.held.retain(|(ask, _)| !is_given(&ask.permit));
        let lapse = self.now() + RESERVED;
        self.permits.lapses.push(lapse);
        Ok(())
    }
}
