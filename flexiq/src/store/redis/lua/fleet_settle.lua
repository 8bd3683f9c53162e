-- fleet_settle: notices silent workers, and answers what holds.
-- Returns the version of the limits, when the next worker falls silent ('' for never), two of each task with a cron, as one
-- list, then two of each limited scope
local silent_at = notice_deaths()
return { limits_version(), silent_at, redis.call('HGETALL', crons), unpack(redis.call('HGETALL', limits)) }
