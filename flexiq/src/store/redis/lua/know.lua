-- know: brings a queue its copy of the limits, and has those rung for that may start now.
-- ARGV  4 version, 5 the first moment at which a worker falls silent ('' for none), then two of each limited task, or
--       of the queue itself (''): its name, and `paused|cap|rates|max_pending`
redis.call('HSET', meta, 'is_known', 1)
redis.call('ZADD', leases, text_of(FAR), LAST_LEASE)
if redis.call('HEXISTS', meta, 'beat_at') == 0 then
  redis.call('HSET', meta, 'beat_at', string.format('%.0f', now))
end
if ARGV[5] ~= '' then
  redis.call('HSET', meta, 'silent_at', ARGV[5])
else
  redis.call('HDEL', meta, 'silent_at')
end
-- An older copy than the one that is here came late.
if tonumber(ARGV[4]) < tonumber(redis.call('HGET', meta, 'limits_version') or 0) then return end
redis.call('HSET', meta, 'limits_version', ARGV[4])
local before, all = {}, redis.call('HGETALL', limits)
for i = 1, #all, 2 do
  before[all[i]] = all[i + 1]
end
redis.call('DEL', limits)
redis.call('HDEL', meta, 'max_pending')
local differs = {}
for i = 6, #ARGV, 2 do
  local name, gate, max_pending = ARGV[i], string.match(ARGV[i + 1], '^(.*)|(%d*)$')
  if name == '' and max_pending ~= '' then redis.call('HSET', meta, 'max_pending', max_pending) end
  if gate ~= '0||' then redis.call('HSET', limits, name, gate) else gate = nil end
  if before[name] ~= gate then differs[name] = true end
  before[name] = nil
end
for name in pairs(before) do
  differs[name] = true
end
local waits = redis.call('HGETALL', waiting)
for i = 1, #waits, 2 do
  if differs[''] or differs[waits[i]] then
    redis.call('ZREM', openings, waits[i])
    set_right(waits[i])
  end
end
tell_keeper()
