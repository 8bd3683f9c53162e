-- The tables of schema version 1. Run in the transaction that writes the version into flexiq_meta.

CREATE TABLE flexiq_meta (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- What each queue holds, so that retention, admission and a cap need no counting.
CREATE TABLE flexiq_queues (
    queue     INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL UNIQUE,
    pending   INTEGER NOT NULL DEFAULT 0, -- scheduled or ready
    running   INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    expired   INTEGER NOT NULL DEFAULT 0
);

-- The jobs of one task, or of one partition of it, and how many are in which state. A partition of which nothing is left
-- goes; its number never comes again (flexiq_meta counts them), because another process may remember it.
CREATE TABLE flexiq_lanes (
    lane      INTEGER PRIMARY KEY,
    queue     INTEGER NOT NULL,
    task      TEXT    NOT NULL,
    partition TEXT    NOT NULL,
    scheduled INTEGER NOT NULL DEFAULT 0,
    ready     INTEGER NOT NULL DEFAULT 0,
    running   INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    expired   INTEGER NOT NULL DEFAULT 0,
    -- What follows is of a partition of which something is ready: its turn, the least of which is next,
    turn      INTEGER,
    -- the place of the best that is ready,
    rank      INTEGER,
    due_at    INTEGER,
    id        BLOB,
    -- how much its own gate let start when it was last looked at,
    startable INTEGER NOT NULL DEFAULT 0,
    -- and when time opens that gate.
    opens_at  INTEGER,
    UNIQUE (queue, task, partition)
);

-- A claim looks only at lanes where something waits,
CREATE INDEX flexiq_lanes_waiting ON flexiq_lanes (queue, task) WHERE ready > 0 AND partition = '';
-- and only at partitions whose gate was open, in the order of their turns.
CREATE INDEX flexiq_lanes_turns ON flexiq_lanes (queue, task, rank, turn, due_at, id) WHERE startable > 0;
CREATE INDEX flexiq_lanes_opening ON flexiq_lanes (queue, opens_at) WHERE opens_at IS NOT NULL;
-- Whoever looks at the whole store finds what has no partition without all that has one, and of partitions the oldest heads.
CREATE INDEX flexiq_lanes_plain ON flexiq_lanes (queue, task) WHERE partition = '';
CREATE INDEX flexiq_lanes_heads ON flexiq_lanes (queue, task, due_at) WHERE due_at IS NOT NULL;

-- The partitions of each task in a queue, taken together.
CREATE TABLE flexiq_partitioned (
    queue     INTEGER NOT NULL,
    task      TEXT    NOT NULL,
    scheduled INTEGER NOT NULL DEFAULT 0,
    ready     INTEGER NOT NULL DEFAULT 0,
    running   INTEGER NOT NULL DEFAULT 0, -- capped or not: a cap that is set later counts what runs already
    succeeded INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    expired   INTEGER NOT NULL DEFAULT 0,
    startable INTEGER NOT NULL DEFAULT 0,
    served    INTEGER NOT NULL DEFAULT 0, -- starts so far, by which turns are counted
    reopens   TEXT,                       -- what holds for each was changed: those after this one are to be looked at
    PRIMARY KEY (queue, task)
) WITHOUT ROWID;

CREATE INDEX flexiq_partitioned_waiting ON flexiq_partitioned (queue, task) WHERE ready > 0;
CREATE INDEX flexiq_partitioned_reopening ON flexiq_partitioned (queue) WHERE reopens IS NOT NULL;

-- Until when a run has said that nothing of a gate should start. Gates are named as in flexiq_starts.
CREATE TABLE flexiq_holds (
    queue INTEGER NOT NULL,
    gate  TEXT    NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (queue, gate)
) WITHOUT ROWID;

CREATE INDEX flexiq_holds_over ON flexiq_holds (queue, until);
CREATE INDEX flexiq_holds_of_tasks ON flexiq_holds (queue, gate, until) WHERE instr(gate, ':') = 0;

-- What holds for each queue, task and partition that has a limit or a pause. What was set stands above what is declared.
-- Rates are text, see codes.rs; set_rates may be empty, which is no rate whatever is declared.
CREATE TABLE flexiq_limits (
    scope                   INTEGER NOT NULL, -- 0 queue, 1 task, 2 each partition of a task, 3 one of them
    name                    TEXT    NOT NULL, -- of one partition: task:partition
    declared_max_concurrent INTEGER,
    declared_rates          TEXT,
    declared_max_pending    INTEGER,
    set_max_concurrent      INTEGER,
    set_rates               TEXT,
    set_max_pending         INTEGER,
    is_paused               INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, name)
) WITHOUT ROWID;

-- The producers that wait for room, in the order of their arrival. A gate is '' for the queue, or task:partition.
CREATE TABLE flexiq_producers (
    number      INTEGER PRIMARY KEY,
    producer    BLOB    NOT NULL UNIQUE,
    queue       INTEGER NOT NULL,
    gate        TEXT    NOT NULL,
    jobs        INTEGER NOT NULL, -- that it wants room for
    max_pending INTEGER,          -- that it declares
    until       INTEGER NOT NULL  -- it has gone if it has not come again
);

CREATE INDEX flexiq_producers_in_line ON flexiq_producers (queue, gate, number);

-- What each worker declares, also that it declares no limit. The youngest living worker's holds.
CREATE TABLE flexiq_declarations (
    scope          INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    worker         BLOB    NOT NULL,
    max_concurrent INTEGER,
    rates          TEXT,
    max_pending    INTEGER,
    PRIMARY KEY (scope, name, worker)
) WITHOUT ROWID;

CREATE INDEX flexiq_declarations_of_worker ON flexiq_declarations (worker);

-- What is enqueued by the clock, and where it stands. A definition is JSON, see store/schedules.rs.
CREATE TABLE flexiq_schedules (
    queue        INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    definition   TEXT    NOT NULL,
    is_set       INTEGER NOT NULL, -- at runtime, which stands above what is declared
    is_paused    INTEGER NOT NULL,
    is_planned   INTEGER NOT NULL,
    seen         INTEGER NOT NULL, -- planned: the next tick; else the moment since which it shall tick
    last         INTEGER,          -- the tick that made a job last,
    last_skipped INTEGER,          -- and that for which there was no room
    wanted_at    INTEGER,          -- when a worker is told of it, or one that sleeps is forgotten; null while it is paused
    asleep_since INTEGER,          -- it was declared, and no living worker declares it any more
    PRIMARY KEY (queue, name)
) WITHOUT ROWID;

CREATE INDEX flexiq_schedules_wanted ON flexiq_schedules (queue, wanted_at, name) WHERE wanted_at IS NOT NULL;

-- The crons that each worker declares. Whether its word holds is decided with that on the limits of the task.
CREATE TABLE flexiq_declared_schedules (
    name       TEXT NOT NULL,
    worker     BLOB NOT NULL,
    queue      TEXT NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (name, worker)
) WITHOUT ROWID;

CREATE INDEX flexiq_declared_schedules_of_worker ON flexiq_declared_schedules (worker);

-- The log of starts of each gate with a rate, one row for all that started together. A gate is '' for the queue, a task,
-- or task:partition. Numbered from the first start of each row, so that the nth newest is one lookup.
CREATE TABLE flexiq_starts (
    queue  INTEGER NOT NULL,
    gate   TEXT    NOT NULL,
    number INTEGER NOT NULL,
    starts INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    until  INTEGER,          -- of a partition: when it has left every window, for partitions come and go
    PRIMARY KEY (queue, gate, number)
) WITHOUT ROWID;

CREATE INDEX flexiq_starts_over ON flexiq_starts (until) WHERE until IS NOT NULL;

-- Where each spread rate stands, in microseconds.
CREATE TABLE flexiq_paces (
    queue INTEGER NOT NULL,
    gate  TEXT    NOT NULL,
    rate  TEXT    NOT NULL,
    pace  INTEGER NOT NULL,
    PRIMARY KEY (queue, gate, rate)
) WITHOUT ROWID;

-- The permits of named limits that runs hold. What rates count of them is in flexiq_starts, in no queue (0).
CREATE TABLE flexiq_permits (
    name  TEXT    NOT NULL,
    key   TEXT    NOT NULL,
    job   BLOB    NOT NULL,
    run   INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (name, key, job, run)
) WITHOUT ROWID;

CREATE INDEX flexiq_permits_lapsing ON flexiq_permits (until);

-- The jobs that stand in line for one, and those that were called out of it.
CREATE TABLE flexiq_line (
    name           TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    job            BLOB    NOT NULL,
    place          INTEGER NOT NULL,
    max_concurrent INTEGER,
    rates          TEXT    NOT NULL,
    ready_at       INTEGER NOT NULL, -- the place in its queue to which the job goes back when it is called
    due            INTEGER NOT NULL, -- when it comes by itself, as it was told last
    called_until   INTEGER,          -- it was called, and its permit is reserved until then
    PRIMARY KEY (name, key, job)
) WITHOUT ROWID;

CREATE INDEX flexiq_line_places ON flexiq_line (name, key, place) WHERE called_until IS NULL;
CREATE INDEX flexiq_line_called ON flexiq_line (name, key, place) WHERE called_until IS NOT NULL;
CREATE INDEX flexiq_line_lapsing ON flexiq_line (called_until) WHERE called_until IS NOT NULL;

-- Until when a run has said that nobody is granted a permit, and when time lets the first in line have one.
CREATE TABLE flexiq_named (
    name       TEXT NOT NULL,
    key        TEXT NOT NULL,
    held_until INTEGER,
    opens_at   INTEGER,
    PRIMARY KEY (name, key)
) WITHOUT ROWID;

CREATE INDEX flexiq_named_over ON flexiq_named (held_until) WHERE held_until IS NOT NULL;
CREATE INDEX flexiq_named_opening ON flexiq_named (opens_at) WHERE opens_at IS NOT NULL;
CREATE INDEX flexiq_named_empty ON flexiq_named (name, key) WHERE held_until IS NULL AND opens_at IS NULL;

-- Running jobs that were called before they could wait: when they are due.
CREATE TABLE flexiq_calls (
    job BLOB    NOT NULL PRIMARY KEY,
    due INTEGER NOT NULL,
    at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX flexiq_calls_over ON flexiq_calls (at);

-- Without a rowid: the id is the only key that anyone asks by, and the indexes below end with it anyway.
-- Small bodies lie in the row, large ones in flexiq_bodies, so that a transition never rewrites them.
CREATE TABLE flexiq_jobs (
    id               BLOB    NOT NULL PRIMARY KEY,
    queue            INTEGER NOT NULL,
    lane             INTEGER NOT NULL,
    state            INTEGER NOT NULL, -- 0 scheduled, 1 ready, 2 running, 3 succeeded, 4 dead, 5 cancelled, 6 expired
    reason           INTEGER NOT NULL, -- why it is scheduled or dead; see codes.rs
    rank             INTEGER NOT NULL, -- minus the priority: lower first
    due_at           INTEGER NOT NULL, -- its age: kept while it runs, so that a released job finds its old place
    until            INTEGER,          -- running: the end of the lease; ended: the end of its retention
    runs             INTEGER NOT NULL DEFAULT 0,
    failures         INTEGER NOT NULL DEFAULT 0,
    deferrals        INTEGER NOT NULL DEFAULT 0,
    losses           INTEGER NOT NULL DEFAULT 0,
    max_losses       INTEGER NOT NULL DEFAULT 0, -- of the present lease
    lapse            INTEGER NOT NULL DEFAULT 0, -- what a lapse of the lease counts as: 0 loss, 1 release
    cancel_requested INTEGER NOT NULL DEFAULT 0, -- 1 asked, 2 the worker knows
    worker           BLOB,             -- who runs it, or ran it last
    enqueued_at      INTEGER NOT NULL,
    expires_at       INTEGER,
    started_at       INTEGER,
    ended_at         INTEGER,
    timeout_ms       INTEGER,
    max_retries      INTEGER,
    result_ttl_ms    INTEGER,
    codec            INTEGER NOT NULL,
    payload          BLOB,             -- null: in flexiq_bodies
    value_kind       INTEGER,          -- 0 unit, 1 JSON, 2 too large; null: none
    value            BLOB,             -- null for JSON: in flexiq_bodies
    last_error       TEXT,
    unique_key       BLOB,             -- what it was stored with, for a retry by hand; null: none
    release          INTEGER,          -- what frees that key, as in flexiq_unique
    has_story        INTEGER NOT NULL DEFAULT 0 -- parts 2 to 4 of flexiq_bodies may be there
) WITHOUT ROWID;

CREATE INDEX flexiq_jobs_ready ON flexiq_jobs (lane, rank, due_at, id) WHERE state = 1;
CREATE INDEX flexiq_jobs_scheduled ON flexiq_jobs (queue, due_at) WHERE state = 0;
CREATE INDEX flexiq_jobs_expiring ON flexiq_jobs (queue, expires_at) WHERE state <= 1 AND expires_at IS NOT NULL;
CREATE INDEX flexiq_jobs_leased ON flexiq_jobs (queue, until) WHERE state = 2;
CREATE INDEX flexiq_jobs_called ON flexiq_jobs (worker) WHERE state = 2 AND cancel_requested = 1;
CREATE INDEX flexiq_jobs_ended ON flexiq_jobs (queue, state, until) WHERE state >= 3;

-- Which job has each unique key of a queue: while it is bound to the life of that job, and until a moment in any case.
CREATE TABLE flexiq_unique (
    queue    INTEGER NOT NULL,
    key      BLOB    NOT NULL,
    job      BLOB    NOT NULL,
    release  INTEGER NOT NULL, -- 0 by the end of its job, 1 by its start, 2 by time alone
    is_bound INTEGER NOT NULL,
    until    INTEGER,
    PRIMARY KEY (queue, key)
) WITHOUT ROWID;

CREATE INDEX flexiq_unique_of_job ON flexiq_unique (job);
CREATE INDEX flexiq_unique_over ON flexiq_unique (queue, until) WHERE is_bound = 0;

CREATE TABLE flexiq_bodies (
    id    BLOB    NOT NULL,
    part  INTEGER NOT NULL, -- 0 payload, 1 value; as store/story.rs writes them: 2 progress, 3 log, 4 setbacks
    bytes BLOB    NOT NULL,
    PRIMARY KEY (id, part)
);

CREATE TABLE flexiq_workers (
    worker   BLOB    NOT NULL PRIMARY KEY,
    label    TEXT    NOT NULL,
    born     INTEGER NOT NULL, -- the place in the order of registering: the largest is the youngest
    since    INTEGER NOT NULL, -- when it registered first
    beat_at  INTEGER NOT NULL,
    until    INTEGER NOT NULL, -- without another beat its declarations hold until then
    is_alive INTEGER NOT NULL DEFAULT 1,
    report   TEXT              -- what it last said that it does
) WITHOUT ROWID;

CREATE INDEX flexiq_workers_alive ON flexiq_workers (until) WHERE is_alive = 1;

-- Samples of what waits: the newest, and the one before.
CREATE TABLE flexiq_samples (
    number INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    text   TEXT    NOT NULL
);

-- The newest turn of each worker in each queue, so that the same number again answers the same.
CREATE TABLE flexiq_turns (
    worker BLOB    NOT NULL,
    queue  INTEGER NOT NULL,
    number INTEGER NOT NULL,
    answer BLOB    NOT NULL,
    PRIMARY KEY (worker, queue)
);

CREATE TABLE flexiq_tasks (
    task        TEXT NOT NULL PRIMARY KEY,
    queue       TEXT NOT NULL,
    declaration TEXT NOT NULL
) WITHOUT ROWID;
