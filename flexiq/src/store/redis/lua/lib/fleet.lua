-- The keys of the whole store, the moment, and what workers declare. No script touches these and a queue.
-- KEYS  those of keys.rs, in its order
-- ARGV  now ('' asks TIME); then the script's own from 2
local meta, queues, tasks, workers, declared, limits = unpack(KEYS)
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
