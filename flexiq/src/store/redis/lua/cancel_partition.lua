-- cancel_partition: cancels the jobs of a partition: all that run, and at most so many of those that are pending.
-- ARGV  4 lane, 5 most
-- Returns how many have ended, how many are told to stop, and whether any are left
local lane, most = ARGV[4], tonumber(ARGV[5])
local low, high = range_of(lane)
local jobs, requested, workers = of_life(), 0, {}

-- There are never more leases than the workers have room for.
local leased_ids = redis.call('ZRANGE', leases, 0, -2)
for i, text in ipairs(read_fields(runs, leased_ids)) do
  if text and lane_of(text) == lane then
    local job = jobs.read_run(text)
    if job.cancel == 0 then
      job.cancel = 1
      jobs.change(leased_ids[i], job)
      redis.call('SADD', called, job.worker .. leased_ids[i])
    end
    workers[job.worker] = true
    requested = requested + 1
  end
end

local pending = {}
for _, key in ipairs({ lanes, delayed }) do
  -- One more than may be, so that it is known whether any are left.
  for _, member in ipairs(redis.call('ZRANGEBYLEX', key, low, high, 'LIMIT', 0, most + 1 - #pending)) do
    pending[#pending + 1] = string.sub(member, -16)
  end
end
local done = math.min(#pending, most)
for i = 1, done do
  jobs.end_job(pending[i], jobs.find_job(pending[i]), CANCELLED, 0, DAY)
end
write_moves()
ring_for_moves()
for worker in pairs(workers) do
  redis.call('PUBLISH', prefix .. ':called', worker)
end
free_keys()
tell_ends()
if redis.call('HEXISTS', meta, 'arrivals') == 1 then of_room().tell() end
tell_keeper()
return { done, requested, #pending > most and 1 or 0 }
