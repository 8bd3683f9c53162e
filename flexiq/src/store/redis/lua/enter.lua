-- enter: joins those who wait in a queue, or takes a bell that is rung.
-- ARGV  4 worker, 5 handle, 6 number of the wait in its handle, then the tasks that it has room for
-- Returns 1 if it took a bell, else 0
local worker, handle, number = ARGV[4], ARGV[5], ARGV[6]
-- Its last leaving, or the answer of its last entering, may have been lost on the way.
empty_hands(worker)
for i = 7, #ARGV do
  if redis.call('HGET', bells, ARGV[i]) == 'rung' then
    redis.call('HDEL', bells, ARGV[i])
    take_bell(worker, ARGV[i])
    tell_keeper()
    return 1
  end
end
local place_in_line = redis.call('HINCRBY', meta, 'waits', 1)
local waiter = number .. handle .. worker .. '\0' .. table.concat(ARGV, '\0', 7) .. '\0'
redis.call('ZADD', waiters, place_in_line, waiter)
table.insert(all_waiters(), waiter)
tell_keeper()
return 0
