-- renew: renews the permits of a worker, and does what time alone does to a named limit.
-- ARGV  2 lease, 3 time to the next beat; then `gate id run` of each permit
-- Returns a character for each permit: 'h'eld or 'l'apsed; whether nothing is left of the limit; and jobs to be called
local length, every = tonumber(ARGV[2]), tonumber(ARGV[3])
local MOST_OPENED, MOST_CALLED_AGAIN = 100, 100
beat(length, every)
local told, renewed, deadline = {}, {}, text_of(math.min(now + length, FAR))
for i = 4, #ARGV do
  if redis.call('ZSCORE', permits, ARGV[i]) then
    told[#told + 1] = 'h'
    renewed[#renewed + 1] = deadline
    renewed[#renewed + 1] = ARGV[i]
  else
    told[#told + 1] = 'l'
  end
end
call_in_pieces('ZADD', permits, renewed)
free_lapsed()
redis.call('ZREMRANGEBYSCORE', holds, '-inf', now_text)
for _, gate in ipairs(redis.call('ZRANGEBYSCORE', moments, '-inf', now_text, 'LIMIT', 0, MOST_OPENED)) do
  advance(gate)
end
-- Whoever was to tell a job may have died: until it comes, it is called again with each beat.
local before = '(' .. text_of(now + RESERVED)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', reserved, '-inf', before, 'LIMIT', 0, MOST_CALLED_AGAIN)) do
  local gate = gate_of(member)
  call_again(gate, read_entry(gate, string.sub(member, -16)))
end
forget_logs()
local left = redis.call('EXISTS', permits, places, starts, holds)
if left == 0 then redis.call('DEL', meta) end
return { table.concat(told), left == 0 and 1 or 0, calls }
