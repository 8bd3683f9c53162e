-- cancel: ends a pending job at once, and tells a running one to stop.
-- ARGV  4 job
-- Returns 'none', 'done', 'requested', or 'ended', state and reason
local id = ARGV[4]
local jobs = of_life()
local job = jobs.find_job(id)
if not job then return { 'none' } end
if job.state >= SUCCEEDED then return { 'ended', job.state, job.reason } end
if job.state == RUNNING then
  if job.cancel == 0 then
    job.cancel = 1
    redis.call('HSET', runs, id, jobs.write_run(job))
    redis.call('SADD', called, job.worker .. id)
  end
  redis.call('PUBLISH', prefix .. ':called', job.worker)
  return { 'requested' }
end
jobs.end_job(id, job, CANCELLED, 0, DAY)
write_moves()
ring_for_moves()
free_keys()
tell_ends()
if redis.call('HEXISTS', meta, 'arrivals') == 1 then of_room().tell() end
tell_keeper()
return { 'done' }
