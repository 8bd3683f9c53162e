-- forget: a worker has gone; what it took and did not use goes to another.
-- ARGV  4 worker
redis.call('HDEL', turns, ARGV[4])
for index = #all_waiters(), 1, -1 do
  if string.sub(waiting_list[index], 23, 38) == ARGV[4] then forget_waiter(index) end
end
give_back(ARGV[4])
if redis.call('HGET', meta, 'alarm_taken') == ARGV[4] then redis.call('HDEL', meta, 'alarm_taken') end
tell_keeper()
