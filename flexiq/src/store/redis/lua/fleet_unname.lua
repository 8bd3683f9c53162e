-- fleet_unname: forgets a named limit of which nothing is left, unless it was used within the last minute: whoever uses
-- one says so more often.
-- ARGV  2 limit
local KEPT = 60000
local used_at = redis.call('ZSCORE', named, ARGV[2])
if used_at and tonumber(used_at) <= now - KEPT then redis.call('ZREM', named, ARGV[2]) end
