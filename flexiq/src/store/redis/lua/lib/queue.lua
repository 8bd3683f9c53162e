-- The keys of a queue, the moment, and the names that every script of a queue shares.
-- KEYS  those of keys.rs, in its order
-- ARGV  now ('' asks TIME), prefix of channels, queue name; then the script's own from 4
local bodies, runs, values, lanes, scheduled, leases, expiries = unpack(KEYS, 1, 7)
local counts, waiting, limits, starts, paces, openings = unpack(KEYS, 12, 17)
local bells, waiters, popped, turns, awaited, called, meta = unpack(KEYS, 18, 24)
local partitions, partitioned, turn_order, holds, delayed, logs = unpack(KEYS, 25, 30)
-- The states of a job, and where those that have ended stand until they are pruned.
local SCHEDULED, READY, RUNNING, SUCCEEDED, DEAD, CANCELLED, EXPIRED = 0, 1, 2, 3, 4, 5, 6
local ended_keys = { [SUCCEEDED] = KEYS[8], [DEAD] = KEYS[9], [CANCELLED] = KEYS[10], [EXPIRED] = KEYS[11] }

local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local prefix, queue_name = ARGV[2], ARGV[3]

-- Stands last among the leases. So long a member makes Redis keep an order for many, where it would walk through all of
-- a few with each call.
local LAST_LEASE = string.rep('\0', 65)
-- Stands among the counts for the same reason; it ends as those of partitions do, which readers of tasks pass over.
local MANY_COUNTS = string.rep('\2', 65)

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

-- The lanes that pending jobs have left: there may be room for a producer that waits.
local made_room = {}

-- No moment lies beyond this: an order of rank and age then fits a number exactly.
local FAR = 2 ^ 44 - 1
local DAY = 86400000
local KEEP_DEAD = 90 * DAY

-- The moment that is meant by a distance from now, or by a moment.
local function moment_of(is_moment, ms)
  return math.min(is_moment == 1 and ms or now + ms, FAR)
end

-- A whole number as text: one that is handed over as a number is written with 17 digits, which costs as much as a call.
local texts_of = {}
local function text_of(number)
  local text = texts_of[number]
  if not text then
    text = string.format('%.0f', number)
    texts_of[number] = text
  end
  return text
end
local now_text = text_of(now)

-- Calls a variadic command in pieces that unpack can carry.
local function call_in_pieces(command, key, list)
  for from = 1, #list, 6000 do
    redis.call(command, key, unpack(list, from, math.min(from + 5999, #list)))
  end
end

-- Reads many fields of a hash, in pieces that unpack can carry.
local function read_fields(key, fields)
  if #fields == 0 then return {} end
  if #fields <= 6000 then return redis.call('HMGET', key, unpack(fields)) end
  local found = {}
  for from = 1, #fields, 6000 do
    local piece = redis.call('HMGET', key, unpack(fields, from, math.min(from + 5999, #fields)))
    for i = 1, #piece do
      found[from + i - 1] = piece[i]
    end
  end
  return found
end

-- A score as its number; nil if the answer is empty.
local function score_of(head)
  return head[2] and tonumber(head[2])
end
