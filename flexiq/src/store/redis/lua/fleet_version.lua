-- fleet_version: makes the version of the limits newer than any copy that a queue has.
-- ARGV  2 the version of a copy that is newer than it may be
redis.call('HSET', meta, 'limits_version', math.max(limits_version(), tonumber(ARGV[2])) + 1)
