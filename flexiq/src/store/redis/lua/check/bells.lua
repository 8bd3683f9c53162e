-- Bells: whether everyone who sleeps is, or will be, told of what can start.
local function is_in_hands(task)
  for _, tasks in ipairs(every_second(redis.call('HGETALL', popped), 2)) do
    if string.find('\0' .. tasks, '\0' .. task .. '\0', 1, true) then return true end
  end
  return false
end

local function is_wanted(task)
  for _, waiter in ipairs(all_waiters()) do
    if wants(waiter, task) then return true end
  end
  return false
end

local function look_at_bells()
  for _, task in ipairs(waiting_tasks()) do
    local bell = redis.call('HGET', bells, task)
    -- What time has opened is rung for at its moment.
    if bell ~= 'rung' and is_wanted(task) and not is_in_hands(task) and not redis.call('ZSCORE', openings, task)
      and look(task) == 'startable' then
      local what = 'something of it can start, and a worker that waits for it is not told'
      if found('bell', task, '', what, 'its bell is rung') then set_right(task, bell) end
    end
  end
  local waiter = all_waiters()[1]
  if waiter and redis.call('HEXISTS', meta, 'alarm_taken') == 0 then
    local keeper = redis.call('HGET', meta, 'keeper') or ''
    local knows = string.sub(keeper, 1, 22) == string.sub(waiter, 1, 22)
    if not knows or struct.unpack('>I6', keeper, 23) > next_moment(redis.call('HGET', meta, 'tick_at')) then
      found('bell', '', '', 'nobody keeps the time for those who wait', 'the one that waits longest does')
    end
  end
end
