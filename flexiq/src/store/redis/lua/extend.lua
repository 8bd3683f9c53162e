-- extend: renews the leases that a worker names in one queue, and keeps house for all, for all workers may be full.
-- ARGV  4 worker, 5 lease, 6 every, 7 the first moment at which a worker falls silent ('' for none), 8 version of the
--       limits; then one of each lease: job, run and whether it lapses as a release
-- Returns whether the queue's copy of the limits is older, a character for each lease: 'h'eld, 'c'ancelled or 'l'ost, and the
-- schedules that are due
local MOST_PRUNED, CALLS_KEPT = 1000, 3600000
local worker, length, every = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
beat(length, every)
if ARGV[7] ~= '' then
  redis.call('HSET', meta, 'silent_at', ARGV[7])
else
  redis.call('HDEL', meta, 'silent_at')
end
local ids, told, renewed = {}, {}, {}
for i = 9, #ARGV do
  ids[#ids + 1] = string.sub(ARGV[i], 1, 16)
end
local texts, jobs = read_fields(runs, ids), of_life()
local deadline = math.min(now + length, FAR)
for i, id in ipairs(ids) do
  local _, run, lapse = struct.unpack('>c16I4B', ARGV[8 + i])
  local job = texts[i] and jobs.read_run(texts[i])
  if job and job.state == RUNNING and job.worker == worker and job.run == run then
    told[i] = job.cancel > 0 and 'c' or 'h'
    renewed[#renewed + 1] = deadline
    renewed[#renewed + 1] = id
    if job.cancel == 1 then
      -- The worker knows: it need not be called again.
      remove(called, worker .. id)
      job.cancel = 2
      jobs.change(id, job)
    end
    if job.lapse ~= lapse then
      job.lapse = lapse
      jobs.change(id, job)
    end
  else
    told[i] = 'l'
  end
end
call_in_pieces('ZADD', leases, renewed)
write_moves()
local has_expired, has_more = keep_house()
for state = SUCCEEDED, EXPIRED do
  prune(state, MOST_PRUNED)
end
write_counts()
redis.call('HDEL', meta, 'alarm_taken')
local limits_version, tick_at = unpack(redis.call('HMGET', meta, 'limits_version', 'tick_at'))
local is_older = tonumber(limits_version or 0) < tonumber(ARGV[8])
local ticks = {}
if tick_at and tonumber(tick_at) <= now then ticks = of_schedules().tell_due() end
-- How long a log is kept is known by what holds now.
if not is_older then of_partitions().forget_logs() end
of_holds().forget()
of_keys().forget_over(MOST_PRUNED)
-- Calls of runs that have ended otherwise.
redis.call('ZREMRANGEBYSCORE', early, '-inf', text_of(now - CALLS_KEPT))
of_partitions().reopen()
for _, task in ipairs(waiting_tasks()) do
  if redis.call('HGET', bells, task) ~= 'rung' then set_right(task) end
end
tell_ends()
if redis.call('HEXISTS', meta, 'arrivals') == 1 then of_room().tell_all() end
tell_keeper()
return { is_older and 1 or 0, table.concat(told), ticks }
