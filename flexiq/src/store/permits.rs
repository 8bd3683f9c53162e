//! What goes into the verbs of named limits and what comes out of them.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::name::Name;
use crate::policy::Rate;

use super::types::LeaseId;

/// A permit of a named limit: one run holds it, at most once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermitId {
    /// The limit.
    pub limit: Name,
    /// Its key: each key is a limit of its own. At most 200 bytes; empty where the limit has none.
    pub key: String,
    /// The run.
    pub lease: LeaseId,
}

/// A run that asks for a permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The permit.
    pub permit: PermitId,
    /// The queue of the run's job.
    pub queue: Name,
    /// When its job had become ready: the place in its queue to which it goes back when it is called.
    pub ready_at: Timestamp,
    /// Permits that may be held at once for this one to be granted.
    pub max_concurrent: Option<u32>,
    /// Permits per period, all of which hold. Permits that were granted without a rate are not counted.
    pub rates: Vec<Rate>,
    /// How long the permit lasts without a beat that names it.
    pub lease: Duration,
}

/// What became of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The run holds the permit.
    Granted,
    /// The job stands in the limit's line. It is called when its turn comes, if it waits for this limit by then.
    Refused {
        /// When the limit may open for it, by time alone; or a time behind which it comes in any case.
        due: Timestamp,
    },
}

/// A permit that is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveBack {
    /// What it was asked with.
    pub ask: Ask,
    /// Nobody is granted one for so long, and then its job is the first.
    pub hold: Option<Duration>,
}
