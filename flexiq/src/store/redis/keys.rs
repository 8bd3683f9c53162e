//! Every key of the store, with its meaning and its type.
//!
//! Those of a queue carry the hash tag `{prefix:queue}`, so that a step of a queue stays in one slot of a cluster; those
//! of the whole store carry `{prefix}`, and no step touches both. A script is given all keys of its side, in this order.

use crate::name::Name;

/// The keys of a queue, as `lua/lib/queue.lua` names them, and the type of each.
const OF_QUEUE: [(&str, &str); 40] = [
    // id → what never changes: moments, rank, task, settings, partition, payload
    ("bodies", "hash"),
    // id → state, counters, moments, worker; absent before the first start, unless the job can expire or was
    // postponed
    ("runs", "hash"),
    // id → kind and bytes of a value
    ("values", "hash"),
    // all of score 0: `lane \0 rank-and-age id` of each ready job. A lane is a task, or a partition as
    // `task \2 length partition`
    ("lanes", "zset"),
    // by due time: `id rank lane`
    ("scheduled", "zset"),
    // by deadline: id of each running job; behind them `LAST_LEASE`
    ("leases", "zset"),
    // by expiry: id of each pending job that can expire
    ("expiries", "zset"),
    // by the end of their retention: ids
    ("succeeded", "zset"),
    ("dead", "zset"),
    ("cancelled", "zset"),
    ("expired", "zset"),
    // state and task → number of jobs, except those that are active; beside them `MANY_COUNTS`
    ("counts", "hash"),
    // task → numbers of its jobs that are ready, of those of them that are in partitions, and of those that are
    // running; a task that has none is not there. Beside them `MANY_COUNTS`
    ("active", "hash"),
    // task, or '' for the queue → `paused|cap|rates`, with `@moment` behind `paused` while a run holds it: a copy of
    // what holds in the whole store; so also `task \2` for each of its partitions, and lanes of partitions that are set
    // apart, and `lane \0` → the pending jobs that are set for one
    ("limits", "hash"),
    // all of score 0: `gate \0 number starts moment`: the log of starts that rates count
    ("starts", "zset"),
    // `gate \0 rate` → where a spread rate stands, in microseconds; of a partition, `lane \0` → all of its rates
    ("paces", "hash"),
    // by the moment at which time opens a gate that was seen shut: task, or lane of a partition
    ("openings", "zset"),
    // task → 'rung' or 'shut'
    ("bells", "hash"),
    // by order of arrival: those who wait
    ("waiters", "zset"),
    // worker → tasks whose bells it has taken and not yet answered by a claim
    ("popped", "hash"),
    // worker → number and answer of its newest turn
    ("turns", "hash"),
    // id → handles that wait for the end of the job
    ("awaited", "hash"),
    // `worker id` of each running job that was cancelled and whose worker does not know
    ("called", "set"),
    // is_known, tick_at (the first of `ticks`), waits, keeper, alarm_taken, beat_at, quiet_ms, lease_ms, reap_after, silent_at, limits_version,
    // max_pending, reopens (the cursor at which partitions are looked at again), arrivals (of producers, while any wait)
    ("meta", "hash"),
    // lane of a partition of which something is pending or running → how much of it, its turn and its place
    ("partitions", "hash"),
    // task → starts of its partitions, and how much of them their gates let start
    ("partitioned", "hash"),
    // all of score 0: `task \0 rank turn age id lane` of each partition of which something may start
    ("turn_order", "zset"),
    // by end: gate that a run holds
    ("holds", "zset"),
    // all of score 0: `lane \0 id` of each scheduled job of a partition
    ("delayed", "zset"),
    // by the moment at which they have left every window: starts of partitions, as in `starts`
    ("logs", "zset"),
    // producer that waits for room → until when it is kept, jobs, handle, and its member of the lines
    ("producers", "hash"),
    // all of score 0: `line \0 number producer`, where a line is '' for the queue or a lane of a partition
    ("producer_line", "zset"),
    // by due time: id of each running job that a named limit has called before it could wait
    ("early", "zset"),
    // unique key → the job that has it, whether as long as that lives, and until when in any case
    ("unique", "hash"),
    // id of each job that was stored with a unique key → that key, and what frees it
    ("keyed", "hash"),
    // by the moment at which time frees it: each unique key that no job's life holds
    ("unique_over", "zset"),
    // schedule → what was made of it, what it shows, and its cron
    ("schedules", "hash"),
    // schedule → head and body of its jobs, as an enqueue sends them; then all of it in JSON
    ("plans", "hash"),
    // by moment: schedule that a worker is told of then
    ("ticks", "zset"),
    // `id \0` → the progress of a job's newest run, `id \1` → its log, `id \2` → its setbacks, as store/story.rs writes
    // them. A run whose tail is empty says that its job has none of them
    ("stories", "hash"),
];

/// The keys of a named limit, as `lua/lib/limit.lua` names them. A gate is one of its keys behind its length.
#[rustfmt::skip]
const OF_LIMIT: [(&str, &str); 11] = [
    // beat_at, quiet_ms, lease_ms, reap_after, as a queue's
    ("meta", "hash"),
    // by deadline: `gate id run` of each permit that is held
    ("permits", "zset"),
    // by deadline: `gate id` of each job that was called, and for which a permit is reserved
    ("reserved", "zset"),
    // all of score 0: `gate \0 place id` of each job in line, `gate \1 place id` of each that was called
    ("line", "zset"),
    // `gate id` → place, due and old place, what it asks with, queue of each job in line or called
    ("places", "hash"),
    // gate → permits that are held, those that are reserved, and how many of these rates will count
    ("used", "hash"),
    // by end: gate that a run holds
    ("holds", "zset"),
    // by the moment at which time lets the first in line have a permit: gate
    ("moments", "zset"),
    // as of a queue: the log of starts, where spread rates stand, and when starts have left every window
    ("starts", "zset"),
    ("paces", "hash"),
    ("logs", "zset"),
];

/// The keys of the whole store, as `lua/lib/fleet.lua` names them.
#[rustfmt::skip]
const OF_FLEET: [(&str, &str); 10] = [
    // schema, born, limits_version, beat_at, quiet_ms, lease_ms, reap_after
    ("meta", "hash"),
    // the queues that are known
    ("queues", "set"),
    // task → its queue, and its declaration in JSON
    ("tasks", "hash"),
    // worker → its age, its life and its label
    ("workers", "hash"),
    // worker → the limits and crons that it declares, in JSON
    ("declared", "hash"),
    // `q:queue` or `t:task` → `declared;set;paused`
    ("limits", "hash"),
    // by last use: the named limits in use
    ("named", "zset"),
    // worker → what it last said that it does, in JSON
    ("reports", "hash"),
    // task → its queue, and the cron that holds of what workers declare
    ("crons", "hash"),
    // newest_at, newest, before_at, before: two samples of what waits, and their moments
    ("samples", "hash"),
];

/// A side of the store: keys that stay together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Queue,
    Limit,
    Fleet,
}

impl Side {
    /// The names of its keys and the type of each, where anything is there, in the order in which scripts are given them.
    pub(super) fn types(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Queue => &OF_QUEUE,
            Self::Limit => &OF_LIMIT,
            Self::Fleet => &OF_FLEET,
        }
    }
}

/// The keys of a queue.
pub(super) fn of_queue(prefix: &str, queue: &Name) -> Vec<String> {
    OF_QUEUE.iter().map(|(key, _)| format!("{{{prefix}:{queue}}}:{key}")).collect()
}

/// One key of a queue.
pub(super) fn one_of_queue(prefix: &str, queue: &Name, key: &str) -> String {
    format!("{{{prefix}:{queue}}}:{key}")
}

/// The keys of a named limit. No queue has a `/` in its name.
pub(super) fn of_limit(prefix: &str, limit: &Name) -> Vec<String> {
    OF_LIMIT.iter().map(|(key, _)| format!("{{{prefix}/{limit}}}:{key}")).collect()
}

/// The keys of the whole store.
pub(super) fn of_fleet(prefix: &str) -> Vec<String> {
    OF_FLEET.iter().map(|(key, _)| format!("{{{prefix}}}:{key}")).collect()
}

/// One key of the whole store.
pub(super) fn one_of_fleet(prefix: &str, key: &str) -> String {
    format!("{{{prefix}}}:{key}")
}
