//! Everything that the model holds.

use std::collections::{BTreeMap, BTreeSet};

use flexiq::JobId;
use flexiq::internals::{Hello, LeaseId, Name, StoredSample, Timestamp, UniqueKey, WorkerId};

use super::gates::Gates;
use super::guard::Guards;
use super::line::Named;
use super::manner::Manner;
use super::permits::Key;
use super::record::Record;
use super::room::Stand;
use super::schedules;
use super::turn::Kept;
use super::turns::Rotation;
use super::unique::Taken;

/// Everything that the model holds.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) manner: Manner,
    pub(super) jobs: BTreeMap<JobId, Record>,
    /// Served or enqueued to at some time.
    pub(super) queues: BTreeSet<Name>,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    /// The newest turn of each worker and queue.
    pub(super) turns: BTreeMap<(WorkerId, Name), Kept>,
    /// By task, as the newest worker gave it.
    pub(super) declarations: BTreeMap<Name, String>,
    /// The home queue of each, likewise.
    pub(super) homes: BTreeMap<Name, Name>,
    pub(super) guards: Guards,
    /// Of what waited, the newest last.
    pub(super) samples: Vec<StoredSample>,
    /// Where each queue has a copy of what holds: when a claim of it looks for silent workers.
    pub(super) silent_at: BTreeMap<Name, Timestamp>,
    pub(super) gates: Gates,
    /// By queue and task, the turns of its partitions.
    pub(super) rotations: BTreeMap<(Name, Name), Rotation>,
    /// The producers that wait for room, in the order of their arrival.
    pub(super) line: Vec<Stand>,
    /// By queue and name.
    pub(super) schedules: BTreeMap<(Name, Name), schedules::Stand>,
    /// How many steps there were that may start something: claims, and permits that were granted.
    pub(super) starters: u64,
    pub(super) named: BTreeMap<Key, Named>,
    /// By queue, the unique keys that are taken, or were.
    pub(super) keys: BTreeMap<(Name, UniqueKey), Taken>,
    /// Running jobs that were called before they could wait: when they are due, and since when that is known.
    pub(super) calls: BTreeMap<JobId, (Timestamp, Timestamp)>,
}

/// A worker that is known.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) hello: Hello,
    /// Its place in the order of registering: the youngest has the largest.
    pub(super) born: u64,
    /// When it registered first.
    pub(super) since: Timestamp,
    pub(super) beat_at: Timestamp,
    /// Without another beat it is found silent then.
    pub(super) lives_until: Timestamp,
    pub(super) is_alive: bool,
    /// What it last said that it does.
    pub(super) report: Option<String>,
}

impl World {
    /// A queue is known from now on.
    pub(super) fn know(&mut self, now: Timestamp, queue: &Name) {
        self.guards.know(self.manner, now, queue);
        self.queues.insert(queue.clone());
    }

    /// The jobs of a queue.
    pub(super) fn of_queue<'a>(&'a self, queue: &'a Name) -> impl Iterator<Item = &'a Record> {
        self.jobs.values().filter(move |record| record.queue == *queue)
    }

    /// The job that a worker runs under this lease, if it is still the worker's.
    pub(super) fn held(&mut self, worker: WorkerId, lease: LeaseId) -> Option<&mut Record> {
        self.jobs.get_mut(&lease.job).filter(|record| record.is_held(worker, lease.run))
    }

    /// At most `most` jobs of a queue that have reached a moment, the earliest first, then by id.
    pub(super) fn overdue(
        &self,
        queue: &Name,
        now: Timestamp,
        most: usize,
        moment: impl Fn(&Record) -> Option<Timestamp>,
    ) -> Vec<JobId> {
        let mut reached: Vec<(Timestamp, JobId)> = self
            .of_queue(queue)
            .filter_map(|record| Some((moment(record).filter(|&moment| moment <= now)?, record.id)))
            .collect();
        reached.sort_unstable();
        reached.into_iter().map(|(_, id)| id).take(most).collect()
    }

    /// A job that is surely there.
    pub(super) fn job(&mut self, id: JobId) -> &mut Record {
        self.jobs.get_mut(&id).expect("the job was found in this very step")
    }
}
