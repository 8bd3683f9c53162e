-- story: what is kept of how a job went.
-- ARGV  4 job
-- Returns nothing if the job is not there; else its log and its setbacks
if redis.call('HEXISTS', bodies, ARGV[4]) == 0 then return {} end
local parts = of_story().read(ARGV[4])
return { parts[1] or '', parts[2] or '' }
