-- fleet_limit: changes what is set at runtime for a task or queue.
-- ARGV  2 scope, 3 what: cap, rates, max_pending or paused, 4 its text ('' takes it back)
local scope, what, text = ARGV[2], ARGV[3], ARGV[4]
local word, cap, rates, max_pending, paused =
  string.match(redis.call('HGET', limits, scope) or '||;||;0', '^([^;]*);([^|]*)|([^|]*)|([^|]*);(%d)$')
if what == 'cap' then cap = text end
if what == 'rates' then rates = text end
if what == 'max_pending' then max_pending = text end
if what == 'paused' then paused = text end
local row = word .. ';' .. cap .. '|' .. rates .. '|' .. max_pending .. ';' .. paused
if row == '||;||;0' then
  redis.call('HDEL', limits, scope)
else
  redis.call('HSET', limits, scope, row)
end
redis.call('HINCRBY', meta, 'limits_version', 1)
