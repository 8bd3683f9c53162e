-- alarm: the keeper's moment has come. It leaves those who wait and claims; until then nobody else is woken for it.
-- ARGV  4 worker, 5 handle, 6 number of the wait in its handle
-- Returns 1 if it is woken, else 0
if next_moment(redis.call('HGET', meta, 'tick_at')) > now then
  redis.call('HDEL', meta, 'keeper')
  tell_keeper()
  return 0
end
for index, waiter in ipairs(all_waiters()) do
  if string.sub(waiter, 1, 38) == ARGV[6] .. ARGV[5] .. ARGV[4] then
    forget_waiter(index)
    redis.call('HSET', meta, 'alarm_taken', ARGV[4])
    return 1
  end
end
return 0
