//! claim: leases the best of what may start to a worker.
//!
//! It looks only at lanes in which something is ready, of tasks that the worker has room for, and only at their
//! heads: the best of the heads is taken until the room is used up. So its work does not depend on how long the lanes
//! are, nor on what waits in others. All gates are asked before the first is taken, and charged after the last.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use rusqlite::params;

use super::codes::state;
use super::declared::notice_deaths;
use super::failure::Tried;
use super::gates::{Passage, StoredGate, Waiting, WaitingLane, WaitingTask, WaitingTurns};
use super::heads::{Key, OpenLane, Reads, lease};
use super::house::{keep_house, next_moment};
use super::lanes::{LaneId, QueueId};
use super::news::Truth;
use super::partitions::OpenTurns;
use super::schedules::tell_due;
use super::write::Write;
use crate::job::JobId;
use crate::name::Name;
use crate::policy::Verdict;
use crate::store::schedules::DueTick;
use crate::store::types::{Claim, Claimed, WorkerId};

/// A claim answers at most this many jobs,
const MOST_JOBS: usize = 1_000;
/// and stops at this many bytes of their payloads.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Claims; answers the jobs, best first, whether a bound ended it early, and the schedules that are due.
pub(super) fn claim(
    write: &mut Write<'_>,
    worker: WorkerId,
    queue_name: &Name,
    queue: QueueId,
    wanted: Claim,
    waiting_workers: usize,
) -> Tried<(Vec<Claimed>, bool, Vec<DueTick>)> {
    let left = keep_house(write, queue)?;
    notice_deaths(write)?;
    let mut ticks = Vec::new();
    if left.has_ticks {
        tell_due(write, (queue_name, queue), &mut ticks)?;
    }
    if left.has_expired {
        // What has expired must not start: the next claim goes on from here.
        return Ok((Vec::new(), true, ticks));
    }
    write.shows_ready()?;
    let Waiting { gate, mut tasks, lanes: waiting, turns } =
        Waiting::read(write.connection, write.lanes, write.ledger, (queue_name, queue))?;
    let mut rooms = Rooms::ask(write, gate, &mut tasks, &wanted)?;
    let mut sources = rooms.open(queue, &tasks, &waiting, &turns);
    // While others wait, a burst is shared with them: what is left wakes the next. What time has opened of a partition
    // since it was looked at is not known: it may not be kept from the only one.
    let in_turns = |turns: &WaitingTurns| if waiting_workers > 0 { turns.startable } else { turns.ready };
    rooms.most = rooms.startable(&sources, &turns, in_turns).div_ceil(waiting_workers + 1);
    let mut taken = Taken::new();
    let (claimed, is_bounded) = take(write, &wanted, &mut rooms, &mut sources, &mut taken)?;
    for (max_losses, jobs) in taken {
        lease(write, worker, &wanted, max_losses, &jobs)?;
    }
    for source in sources {
        let task = source.task();
        let (is_plain, lanes) = source.charge(write)?;
        for (lane, jobs) in lanes {
            tasks[task].ready -= if is_plain { jobs } else { 0 };
            write.ledger.adds(queue, lane, state::READY, -jobs);
            write.ledger.adds(queue, lane, state::RUNNING, jobs);
        }
    }

    // What is left, also of tasks that this worker cannot start: the truth for the bells.
    let verdicts = rooms.charge(write)?;
    let sights = turns_left(write, queue, &turns)?;
    let mut truth = Truth {
        worker,
        queue: queue_name.clone(),
        tasks: wanted.tasks.into_iter().map(|room| room.task).collect(),
        startable: BTreeSet::new(),
        shut: Vec::new(),
    };
    let mut next = next_moment(write.connection, queue)?;
    for (index, (task, verdict)) in tasks.into_iter().zip(verdicts).enumerate() {
        let turns = sights.get(&index).copied().unwrap_or_default();
        match verdict {
            _ if task.ready == 0 && !turns.is_waiting => {}
            Verdict::Open(_) if task.ready > 0 || turns.is_startable => {
                truth.startable.insert(task.name);
            }
            // When time opens one of its partitions, the alarm of the queue rings.
            _ => {
                next = [next, verdict.opens_at()].into_iter().flatten().min();
                truth.shut.push(task.name);
            }
        }
    }
    write.news.claim = Some(truth);
    write.news.moments.push((queue_name.clone(), next));
    Ok((claimed, left.has_more || is_bounded, ticks))
}

/// What was taken and is not leased yet, by the losses that its task may have.
type Taken = BTreeMap<u32, Vec<JobId>>;

/// Takes the best head again and again while there is room; answers whether a bound ended it.
fn take(
    write: &mut Write<'_>,
    wanted: &Claim,
    rooms: &mut Rooms,
    sources: &mut [Source],
    taken: &mut Taken,
) -> Tried<(Vec<Claimed>, bool)> {
    let mut reads = Reads::prepare(write.connection)?;
    // As many of each lane as if all took part alike, and the head that is left then: with one lane that is all of it,
    // with many little is read in vain, and no lane is read twice.
    let share = rooms.total().min(MOST_JOBS).div_ceil(sources.len().max(1)) + 1;
    let mut heads: BinaryHeap<Reverse<(Key, usize)>> = BinaryHeap::with_capacity(sources.len());
    for (index, source) in sources.iter_mut().enumerate() {
        if let Source::Lane(lane) = source {
            // One more, so that the place of the next is known when they are taken.
            lane.chunk = (share + 1).min(rooms.of(lane.task)).max(1);
        }
        heads.extend(source.head(write, &mut reads)?.map(|key| Reverse((key, index))));
    }
    let mut claimed = Vec::new();
    let mut bytes = 0;
    while let Some(Reverse((_, index))) = heads.pop() {
        let source = &mut sources[index];
        let task = source.task();
        if rooms.of(task) == 0 {
            // The whole lane is passed over.
            continue;
        }
        if claimed.len() >= MOST_JOBS || bytes >= MOST_BYTES {
            return Ok((claimed, true));
        }
        let room = &wanted.tasks[source.room()];
        let Some(mut job) = source.take(write, &mut reads, &room.task)? else { continue };
        taken.entry(room.max_losses).or_default().push(job.lease.job);
        job.is_capped |= rooms.is_capped(task);
        bytes += job.payload.bytes.len();
        claimed.push(job);
        rooms.take(task);
        if rooms.of(task) > 0 {
            heads.extend(source.head(write, &mut reads)?.map(|key| Reverse((key, index))));
        }
    }
    Ok((claimed, false))
}

/// What a claim takes from.
enum Source {
    /// The jobs of a task that have no partition.
    Lane(OpenLane),
    /// Its partitions, by turns.
    Turns(OpenTurns),
}

impl Source {
    /// The index of its task among the waiting ones.
    fn task(&self) -> usize {
        match self {
            Self::Lane(lane) => lane.task,
            Self::Turns(turns) => turns.task,
        }
    }

    /// The index of its task's room.
    fn room(&self) -> usize {
        match self {
            Self::Lane(lane) => lane.room,
            Self::Turns(turns) => turns.room,
        }
    }

    fn head(&mut self, write: &Write<'_>, reads: &mut Reads<'_>) -> rusqlite::Result<Option<Key>> {
        match self {
            Self::Lane(lane) => lane.head(reads),
            Self::Turns(turns) => turns.head(write, reads),
        }
    }

    fn take(
        &mut self,
        write: &mut Write<'_>,
        reads: &mut Reads<'_>,
        task: &Name,
    ) -> rusqlite::Result<Option<Claimed>> {
        match self {
            Self::Lane(lane) => lane.take(write, reads, task),
            Self::Turns(turns) => turns.take(write, reads, task),
        }
    }

    /// Charges the gates of partitions; answers how much was taken of each lane, and whether that has no partition.
    fn charge(self, write: &mut Write<'_>) -> rusqlite::Result<(bool, Vec<(LaneId, i64)>)> {
        match self {
            Self::Lane(lane) if lane.taken > 0 => Ok((true, vec![(lane.id, lane.taken)])),
            Self::Lane(_) => Ok((true, Vec::new())),
            Self::Turns(turns) => Ok((false, turns.charge(write)?)),
        }
    }
}

/// What is left of a task in partitions.
#[derive(Clone, Copy, Debug, Default)]
struct TurnsLeft {
    is_waiting: bool,
    is_startable: bool,
}

/// What is left of the tasks with partitions, by their index among the waiting ones.
fn turns_left(
    write: &mut Write<'_>,
    queue: QueueId,
    turns: &[WaitingTurns],
) -> rusqlite::Result<HashMap<usize, TurnsLeft>> {
    if turns.is_empty() {
        return Ok(HashMap::new());
    }
    write.shows_ready()?;
    let read = |turns: &WaitingTurns| {
        let left = write
            .connection
            .prepare_cached(
                "SELECT ready > 0, startable > 0 OR reopens IS NOT NULL FROM flexiq_partitioned
                 WHERE queue = ?1 AND task = ?2",
            )?
            .query_row(params![queue, &*turns.name], |row| {
                Ok(TurnsLeft { is_waiting: row.get(0)?, is_startable: row.get(1)? })
            })?;
        Ok((turns.task, left))
    };
    turns.iter().map(read).collect()
}

/// What room is left: by slot, by task, and behind the gates.
struct Rooms {
    slots: Vec<u32>,
    /// The slot of each room's task, and how many of it are still taken.
    rooms: Vec<(usize, u32)>,
    /// The gate of the queue.
    queue: Passage,
    /// Of each waiting task, its gate and its room.
    tasks: Vec<(Passage, Option<usize>)>,
    /// How many are still taken in all.
    most: usize,
}

impl Rooms {
    /// Asks all gates, before anything is taken.
    fn ask(
        write: &Write<'_>,
        gate: Option<StoredGate>,
        tasks: &mut [WaitingTask],
        wanted: &Claim,
    ) -> rusqlite::Result<Self> {
        let (connection, now) = (write.connection, write.now);
        let by_name: HashMap<&Name, usize> =
            wanted.tasks.iter().enumerate().map(|(index, room)| (&room.task, index)).collect();
        let all = wanted.slots.iter().fold(0, |sum: u32, &free| sum.saturating_add(free));
        let mut rooms = Self {
            slots: wanted.slots.clone(),
            rooms: wanted.tasks.iter().map(|room| (room.slot, room.at_most)).collect(),
            queue: Passage::ask(gate, connection, all.min(MOST_JOBS as u32), now)?,
            tasks: Vec::with_capacity(tasks.len()),
            most: usize::MAX,
        };
        let is_shut = rooms.queue.room() == 0;
        for task in tasks {
            let room = by_name.get(&task.name).copied();
            let most = room.map_or(0, |room| rooms.free(room)).min(MOST_JOBS as u32);
            // Behind a queue that is shut nobody needs to know.
            let gate = task.gate.take().filter(|_| !is_shut);
            rooms.tasks.push((Passage::ask(gate, connection, most, now)?, room));
        }
        Ok(rooms)
    }

    /// What there is room for.
    fn open(
        &self,
        queue: QueueId,
        tasks: &[WaitingTask],
        lanes: &[WaitingLane],
        turns: &[WaitingTurns],
    ) -> Vec<Source> {
        let room = |task: usize| self.tasks[task].1.filter(|_| self.of(task) > 0);
        let lanes = lanes.iter().filter_map(|lane| {
            let lane = OpenLane::new(lane.id, String::new(), lane.task, room(lane.task)?, lane.ready);
            Some(Source::Lane(lane))
        });
        let turns = turns.iter().filter(|turns| turns.startable > 0).filter_map(|turns| {
            let indexes = (turns.task, room(turns.task)?);
            let name = tasks[turns.task].name.clone();
            Some(Source::Turns(OpenTurns::new(queue, name, indexes, turns.served)))
        });
        lanes.chain(turns).collect()
    }

    /// Free slots for a room.
    fn free(&self, room: usize) -> u32 {
        let (slot, at_most) = self.rooms[room];
        self.slots.get(slot).map_or(0, |&free| free.min(at_most))
    }

    /// How many of these jobs the gates let start, as far as they were asked.
    fn startable(
        &self,
        sources: &[Source],
        turns: &[WaitingTurns],
        in_turns: impl Fn(&WaitingTurns) -> i64,
    ) -> usize {
        let ready = |source: &Source| match source {
            Source::Lane(lane) => lane.ready,
            Source::Turns(open) => turns.iter().find(|turns| turns.task == open.task).map_or(0, &in_turns),
        };
        let open =
            |source: &Source| (ready(source) as usize).min(self.tasks[source.task()].0.room() as usize);
        sources.iter().map(open).sum::<usize>().min(self.queue.room() as usize)
    }

    /// How many more of a task may be taken.
    fn of(&self, task: usize) -> usize {
        let (passage, room) = &self.tasks[task];
        let free = room.map_or(0, |room| self.free(room));
        (free.min(passage.room()).min(self.queue.room()) as usize).min(self.most)
    }

    fn is_capped(&self, task: usize) -> bool {
        self.queue.is_capped() || self.tasks[task].0.is_capped()
    }

    fn take(&mut self, task: usize) {
        self.most -= 1;
        let (passage, room) = &mut self.tasks[task];
        passage.take();
        self.queue.take();
        if let Some(room) = *room {
            let (slot, at_most) = &mut self.rooms[room];
            *at_most -= 1;
            self.slots[*slot] -= 1;
        }
    }

    fn total(&self) -> usize {
        self.slots.iter().map(|&free| free as usize).sum::<usize>().min(self.most)
    }

    /// Charges all gates; answers what they say of each task now, the queue's own first.
    fn charge(self, write: &Write<'_>) -> rusqlite::Result<Vec<Verdict>> {
        let queue = self.queue.charge(write.connection, write.now)?;
        let mut verdicts = Vec::with_capacity(self.tasks.len());
        for (passage, _) in self.tasks {
            let task = passage.charge(write.connection, write.now)?;
            verdicts.push(if queue.starts() == 0 { queue } else { task });
        }
        Ok(verdicts)
    }
}
