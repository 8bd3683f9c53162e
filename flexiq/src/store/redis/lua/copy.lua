-- copy: this queue's copy of the limits. It only reads.
-- Returns its version, the max_pending of the queue ('' for none), and a list with two of each gate
local version, max_pending = unpack(redis.call('HMGET', meta, 'limits_version', 'max_pending'))
return { tonumber(version or 0), max_pending or '', redis.call('HGETALL', limits) }
