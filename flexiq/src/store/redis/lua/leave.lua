-- leave: leaves those who wait, giving back what was handed over and not taken.
-- ARGV  4 worker, 5 handle, 6 number of the wait in its handle
local mark = ARGV[6] .. ARGV[5] .. ARGV[4]
local was_waiting = false
for index, waiter in ipairs(all_waiters()) do
  if string.sub(waiter, 1, 38) == mark then
    forget_waiter(index)
    was_waiting = true
    break
  end
end
if not was_waiting then
  give_back(ARGV[4])
  if redis.call('HGET', meta, 'alarm_taken') == ARGV[4] then redis.call('HDEL', meta, 'alarm_taken') end
end
tell_keeper()
