//! What runs of a history ask of named limits.

use std::time::Duration;

use flexiq::internals::{Ask, LeaseId, Name, PermitId, Rate};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::chances::lease;
use crate::limits::{name, rates};
use crate::steps::{LEASE, QUEUES, Step, WORKERS, secs};

/// The named limits of the small world, and their keys.
const KEYS: [(&str, &str); 3] = [("api", ""), ("api", "acme"), ("sms", "")];

/// What a run asks with.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    limit: (&'static str, &'static str),
    max_concurrent: Option<u32>,
    rates: Vec<Rate>,
}

impl Wish {
    pub(crate) fn of(&self, lease: LeaseId, queue: Name) -> Ask {
        Ask {
            ready_at: flexiq_tests::START,
            permit: PermitId { limit: name(self.limit.0), key: self.limit.1.into(), lease },
            queue,
            max_concurrent: self.max_concurrent,
            rates: self.rates.clone(),
            lease: LEASE,
        }
    }
}

/// A permit that is given back.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) what: What,
    pub(crate) hold: Option<Duration>,
}

/// Which permit.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// One that its run believes to hold.
    Held(Index),
    /// One that was asked for at some time.
    Any(Index),
}

/// A run asks for a permit, or some are given back.
pub(crate) fn named() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..WORKERS, 0..QUEUES.len(), lease(), wish())
            .prop_map(|(worker, queue, lease, wish)| Step::Acquire { worker, queue, lease, wish }),
        2 => prop::collection::vec(given(), 1..4).prop_map(Step::GiveBack),
    ]
}

/// Mostly for a number alone, so that lines grow; mostly of one limit, so that runs meet.
fn wish() -> impl Strategy<Value = Wish> {
    let limit = prop_oneof![4 => Just(KEYS[0]), 1 => select(KEYS[1..].to_vec())];
    let number = || prop_oneof![3 => Just(2), 1 => 1..4_u32];
    let numbers = prop_oneof![
        4 => number().prop_map(|most| (Some(most), Vec::new())),
        2 => rates().prop_map(|rates| (None, rates)),
        2 => (number(), rates()).prop_map(|(most, rates)| (Some(most), rates)),
    ];
    (limit, numbers).prop_map(|(limit, (max_concurrent, rates))| Wish { limit, max_concurrent, rates })
}

fn given() -> impl Strategy<Value = Given> {
    let what = prop_oneof![
        6 => any::<Index>().prop_map(What::Held),
        1 => any::<Index>().prop_map(What::Any),
    ];
    // Shorter than the time behind the calls, so that the two are told apart.
    let hold = option::weighted(0.2, prop_oneof![3 => (1..12_u64).prop_map(secs), 1 => Just(secs(60))]);
    (what, hold).prop_map(|(what, hold)| Given { what, hold })
}
