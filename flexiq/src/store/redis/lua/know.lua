-- know: brings a queue its copy of the limits, and has those rung for that may start now.
-- ARGV  4 version, 5 the first moment at which a worker falls silent ('' for none), 6 number of the crons that are declared
--       here, then three of each: task, whether it catches up and its cron, and what it enqueues; then two of each limited task, of the
--       queue itself (''), of each partition of a task (`task \2`) or of one: its name, and `paused|cap|rates|max_pending`
redis.call('HSET', meta, 'is_known', 1)
redis.call('ZADD', leases, text_of(FAR), LAST_LEASE)
redis.call('HSET', active, MANY_COUNTS, NONE_ACTIVE)
redis.call('HSET', counts, MANY_COUNTS, '0')
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
local before, held, all = {}, {}, redis.call('HGETALL', limits)
for i = 1, #all, 2 do
  local name, gate = all[i], all[i + 1]
  held[name] = tonumber(string.match(gate, '^%d@(%d+)'))
  if held[name] then gate = string.gsub(gate, '@%d+', '', 1) end
  if not held[name] or gate ~= '0||' then before[name] = gate end
end
redis.call('DEL', limits)
redis.call('HDEL', meta, 'max_pending')
local differs = {}
local first_limit = 7 + 3 * tonumber(ARGV[6])
for i = first_limit, #ARGV, 2 do
  local name, gate, max_pending = ARGV[i], string.match(ARGV[i + 1], '^(.*)|(%d*)$')
  local task, is_partition = task_of(name)
  local is_of_one = is_partition and #name > #task + 1
  if max_pending ~= '' then
    if name == '' then redis.call('HSET', meta, 'max_pending', max_pending) end
    if is_of_one then redis.call('HSET', limits, name .. '\0', max_pending) end
  end
  -- That nothing holds one partition back stands above what holds for each.
  if gate ~= '0||' or is_of_one then redis.call('HSET', limits, name, gate) else gate = nil end
  if before[name] ~= gate then differs[name] = true end
  before[name] = nil
end
for name in pairs(before) do
  if string.byte(name, -1) ~= 0 then differs[name] = true end
end
-- What runs have said holds on.
for name, held_until in pairs(held) do
  of_holds().write(name, held_until)
end
local differing_tasks = {}
for name in pairs(differs) do
  local task, is_partition = task_of(name)
  differing_tasks[task] = true
  if is_partition and #name == #task + 1 then
    redis.call('HSET', meta, 'reopens', '0')
  elseif is_partition then
    of_partitions().touch(name)
  end
end
if has_partitions then of_partitions().reopen() end
for _, task in ipairs(waiting_tasks()) do
  if differs[''] or differing_tasks[task] or ready_tasks[task] then
    redis.call('ZREM', openings, task)
    set_right(task)
  end
end
of_schedules().declare(7, tonumber(ARGV[6]))
if redis.call('HEXISTS', meta, 'arrivals') == 1 then of_room().tell_all() end
tell_keeper()
