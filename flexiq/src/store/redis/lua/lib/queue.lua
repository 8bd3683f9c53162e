-- The keys of a queue, and the names that every script of a queue shares.
-- KEYS  those of keys.rs, in its order
-- ARGV  now ('' asks TIME), prefix of channels, queue name; then the script's own from 4
local bodies, runs, values, lanes, scheduled, leases, expiries = unpack(KEYS, 1, 7)
local counts, active, limits, starts, paces, openings = unpack(KEYS, 12, 17)
local bells, waiters, popped, turns, awaited, called, meta = unpack(KEYS, 18, 24)
local partitions, partitioned, turn_order, holds, delayed, logs = unpack(KEYS, 25, 30)
local early, stories = KEYS[33], KEYS[40]
-- The states of a job, and where those that have ended stand until they are pruned.
local SCHEDULED, READY, RUNNING, SUCCEEDED, DEAD, CANCELLED, EXPIRED = 0, 1, 2, 3, 4, 5, 6
local ended_keys = { [SUCCEEDED] = KEYS[8], [DEAD] = KEYS[9], [CANCELLED] = KEYS[10], [EXPIRED] = KEYS[11] }

local prefix, queue_name = ARGV[2], ARGV[3]

-- Stands last among the leases. So long a member makes Redis keep an order for many, where it would walk through all of
-- a few with each call.
local LAST_LEASE = string.rep('\0', 65)
-- Stands among the counts for the same reason. It is no task's name.
local MANY_COUNTS = string.rep('\2', 65)

-- What is active of a task: the jobs that are ready, those of them in partitions, and those that are running.
local ACTIVE = '>I4I4I4'
local NONE_ACTIVE = string.rep('\0', 12)

local function leased()
  return math.max(redis.call('ZCARD', leases) - 1, 0)
end

-- The jobs that are scheduled or ready.
local function pending_jobs()
  local pending = redis.call('HLEN', bodies) - leased()
  for state = SUCCEEDED, EXPIRED do
    pending = pending - redis.call('ZCARD', ended_keys[state])
  end
  return pending
end

-- The lanes that pending jobs have left, or '' where those of partitions alone need be named: there may be room for a
-- producer that waits.
local made_room = {}

local DAY = 86400000
local KEEP_DEAD = 90 * DAY

-- The moment that is meant by a distance from now, or by a moment.
local function moment_of(is_moment, ms)
  return math.min(is_moment == 1 and ms or now + ms, FAR)
end

-- A score as its number; nil if the answer is empty.
local function score_of(head)
  return head[2] and tonumber(head[2])
end
