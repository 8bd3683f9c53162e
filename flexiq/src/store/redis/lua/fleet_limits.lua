-- fleet_limits: what holds in the whole store. It only reads.
-- Returns the version of the limits, and a list with two of each limited scope
return { limits_version(), redis.call('HGETALL', limits) }
