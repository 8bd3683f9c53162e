-- fleet_beat: says that a worker lives, and notices those that do not.
-- ARGV  2 worker, 3 lease, 4 every, 5 what it does ('' where that is as it was)
-- Returns whether the worker is known, when the next worker falls silent ('' for never), the version of the limits, the
-- numbers of queues and of named limits in use, their names, and workers that are forgotten
local SILENT = 86400000
local id, lease = ARGV[2], tonumber(ARGV[3])
beat(lease, tonumber(ARGV[4]))
local text = redis.call('HGET', workers, id)
if text then
  local worker = read_worker(text)
  local was_alive = worker.is_alive
  worker.beat_at, worker.silent_at, worker.is_alive = now, now + lease, 1
  write_worker(id, worker)
  if ARGV[5] ~= '' then redis.call('HSET', reports, id, ARGV[5]) end
  if was_alive == 0 then settle() end
end
local silent_at = notice_deaths()
local all, forgotten = redis.call('HGETALL', workers), {}
for i = 1, #all, 2 do
  local worker = read_worker(all[i + 1])
  -- One that was not found silent yet may only have slept with everybody else.
  if worker.is_alive == 0 and worker.beat_at < now - SILENT then
    forgotten[#forgotten + 1] = all[i]
    forget_worker(all[i])
  end
end
if #forgotten > 0 then settle() end
local answer = { text and 1 or 0, silent_at, limits_version() }
local known, in_use = redis.call('SMEMBERS', queues), redis.call('ZRANGE', named, 0, -1)
answer[4], answer[5] = #known, #in_use
for _, list in ipairs({ known, in_use, forgotten }) do
  for _, one in ipairs(list) do
    answer[#answer + 1] = one
  end
end
return answer
