-- fleet_open: says which version of the schema a store has, and marks one that is new.
-- ARGV  2 the newest version that this build knows
-- Returns the version
redis.call('HSETNX', meta, 'schema', ARGV[2])
return tonumber(redis.call('HGET', meta, 'schema'))
