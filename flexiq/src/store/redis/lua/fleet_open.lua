-- fleet_open: says which version of the schema a store has, and marks one that is new.
-- ARGV  2 the newest version that this build knows; '' leaves a store that is not there as it is
-- Returns the version, or 0 if the store is not there
if ARGV[2] ~= '' then redis.call('HSETNX', meta, 'schema', ARGV[2]) end
return tonumber(redis.call('HGET', meta, 'schema') or 0)
