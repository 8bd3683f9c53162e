-- fleet_sample: keeps a sample of what waits, unless somebody else has kept one since, and the one before it.
-- ARGV  2 the moment of the newest that was seen ('' for none), 3 the sample
-- Returns whether it is kept
local newest = redis.call('HMGET', samples, 'newest_at', 'newest')
if (newest[1] or '') ~= ARGV[2] then return 0 end
if newest[1] then redis.call('HSET', samples, 'before_at', newest[1], 'before', newest[2]) end
redis.call('HSET', samples, 'newest_at', now_text, 'newest', ARGV[3])
return 1
