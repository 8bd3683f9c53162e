-- retry: makes a dead, cancelled or expired job ready: a new generation, whose budgets are fresh and whose run number
-- goes on, so that a worker of an earlier run can still change nothing.
-- ARGV  4 job
-- Returns 1 if it did, 0 if the job is in another state, -1 if it is not there; or the id of the job that has its unique key
local id = ARGV[4]
local jobs = of_life()
local job = jobs.find_job(id)
if not job then return -1 end
if job.state <= SUCCEEDED then return 0 end
local owner = has_keyed() and of_keys().take_again(id)
if owner then return owner end
job.failures, job.deferrals, job.losses, job.cancel, job.expires = 0, 0, 0, 0, 0
job.started, job.error, job.due = 0, job.error == '' and '' or tail_with_story(''), now
job.ended = 0
jobs.make_pending(id, job, READY)
write_moves()
ring_for_moves()
tell_keeper()
return 1
