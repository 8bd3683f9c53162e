-- ended: how a job has ended; if it has not, its handle is told when it does.
-- ARGV  4 job, 5 handle
-- Returns 'none', 'later', or 'ended', run and value
local id, handle = ARGV[4], ARGV[5]
local jobs = of_life()
local job = jobs.find_job(id)
if not job then return { 'none' } end
if job.state >= SUCCEEDED then return { 'ended', jobs.write_run(job), redis.call('HGET', values, id) or '' } end
local told = redis.call('HGET', awaited, id) or ''
for at = 1, #told, 16 do
  if string.sub(told, at, at + 15) == handle then return { 'later' } end
end
redis.call('HSET', awaited, id, told .. handle)
return { 'later' }
