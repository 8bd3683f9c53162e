-- delete: deletes a job that has ended.
-- ARGV  4 job
-- Returns 1 if it did, 0 if the job has not ended, -1 if it is not there
local job = of_life().find_job(ARGV[4])
if not job then return -1 end
if job.state < SUCCEEDED then return 0 end
if has_keyed() then of_keys().free_deleted(ARGV[4]) end
delete_ended(job.state, { ARGV[4] })
write_counts()
return 1
