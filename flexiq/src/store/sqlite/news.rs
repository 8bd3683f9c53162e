//! What a committed request has to tell those who wait.

use std::collections::{BTreeSet, HashSet};

use super::lanes::LaneId;
use crate::clock::Timestamp;
use crate::job::JobId;
use crate::name::Name;
use crate::store::types::{ProducerId, WorkerId};

/// What a committed request has to tell.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Lanes in which a job became ready.
    pub(super) ready: Vec<LaneId>,
    /// Lanes of which a lease has ended, so that a cap may have room.
    pub(super) freed: Vec<LaneId>,
    /// Queues and tasks of which something waits behind a gate that was changed.
    pub(super) changed: Vec<(Name, Name)>,
    /// Queues and tasks of which something waits, as a beat saw them.
    pub(super) waiting: Vec<(Name, Name)>,
    /// What a claim saw at its end.
    pub(super) claim: Option<Truth>,
    /// Moments that were put in: due times and expiries.
    pub(super) earlier: Vec<(Name, Timestamp)>,
    /// The next moment of a queue, as it now is.
    pub(super) moments: Vec<(Name, Option<Timestamp>)>,
    pub(super) ended: Vec<JobId>,
    /// Workers of which a job was cancelled.
    pub(super) called: Vec<WorkerId>,
    /// Producers that stand in line now.
    pub(super) stands: Vec<Stand>,
    /// A limit was changed, or a producer has left its line: those who wait may have room.
    pub(super) is_room_anywhere: bool,
}

/// A producer that stands in the line of a queue, or of one partition of it.
#[derive(Debug)]
pub(super) struct Stand {
    pub(super) producer: ProducerId,
    pub(super) queue: Name,
    pub(super) gate: String,
}

/// What a claim saw at its end.
#[derive(Debug)]
pub(super) struct Truth {
    pub(super) worker: WorkerId,
    pub(super) queue: Name,
    /// The tasks that it had room for.
    pub(super) tasks: HashSet<Name>,
    /// All tasks of the queue of which something is still ready and all gates are open,
    pub(super) startable: BTreeSet<Name>,
    /// and those of which something is ready behind a gate that is shut.
    pub(super) shut: Vec<Name>,
}

impl News {
    /// A moment at which time alone may make something of a queue startable.
    pub(super) fn put_in(&mut self, queue: &Name, moment: Timestamp) {
        match self.earlier.iter_mut().find(|(known, _)| known == queue) {
            Some((_, soonest)) => *soonest = moment.min(*soonest),
            None => self.earlier.push((queue.clone(), moment)),
        }
    }
}

impl Truth {
    pub(super) fn looked_at(&self, queue: &Name, task: &Name) -> bool {
        self.queue == *queue && self.tasks.contains(task)
    }
}
