-- fleet_retire: forgets a worker that has stopped.
-- ARGV  2 worker
-- Returns 1 if what holds has changed, else 0
local before = limits_version()
if redis.call('HEXISTS', workers, ARGV[2]) == 0 then return 0 end
forget_worker(ARGV[2])
settle()
return limits_version() ~= before and 1 or 0
