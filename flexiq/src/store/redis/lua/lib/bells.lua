-- Bells: who sleeps and wants a task is told by a message, the one that waits longest first.
-- A bell is 'rung' (nobody has taken it), 'shut' (something waits behind a gate), the newest place of the line when it was
-- handed over, or not there: silent, or taken.
local waiting_list, keeper_told

-- Those who wait, the longest first: a member is number (6 bytes), handle (16), worker (16), then \0 task \0 task \0.
local function all_waiters()
  waiting_list = waiting_list or redis.call('ZRANGE', waiters, 0, -1)
  return waiting_list
end

local function wants(waiter, task)
  return string.find(waiter, '\0' .. task .. '\0', 39, true) ~= nil
end

-- Tells a waiter's handle; false if it is gone.
local function tell(handle, kind, body)
  return redis.call('PUBLISH', prefix .. ':' .. handle, kind .. body .. queue_name) > 0
end

local function forget_waiter(index)
  redis.call('ZREM', waiters, waiting_list[index])
  table.remove(waiting_list, index)
end

-- A worker has taken bells which it has not answered by a claim.
local function take_bell(worker, task)
  redis.call('HSET', popped, worker, (redis.call('HGET', popped, worker) or '') .. task .. '\0')
end

-- Rings for a task: one waiter that wants it is woken, or the bell stays rung until one comes. What a claim has left over is
-- shared with those who stood in the line before: one that comes back to it has had its share.
local function ring(task, is_left_over, bell)
  if bell == nil then bell = redis.call('HGET', bells, task) end
  if bell == 'rung' then return end
  local index = 1
  while index <= #all_waiters() do
    local waiter = waiting_list[index]
    if wants(waiter, task) then
      forget_waiter(index)
      if tell(string.sub(waiter, 7, 22), 'b', string.sub(waiter, 1, 6) .. string.sub(waiter, 23, 38)) then
        local newest = is_left_over and tonumber(bell) or redis.call('HGET', meta, 'waits')
        redis.call('HSET', bells, task, newest)
        take_bell(string.sub(waiter, 23, 38), task)
        return
      end
    else
      index = index + 1
    end
  end
  redis.call('HSET', bells, task, 'rung')
end

-- What can be seen of a task: 'empty', 'startable', or 'shut' and when time opens it.
local function look(task)
  local ready, in_partitions = struct.unpack(ACTIVE, redis.call('HGET', active, task) or NONE_ACTIVE)
  if ready == 0 then return 'empty' end
  local gates = redis.call('HMGET', limits, '', task)
  for i, name in ipairs({ '', task }) do
    local most, opens = admit(read_gate(name, gates[i]), 1)
    if most == 0 then return 'shut', opens end
  end
  -- Of partitions that time opens, the moment is known already.
  if ready == in_partitions and not of_partitions().has_open(task) then return 'shut' end
  return 'startable'
end

-- Sets the bell of a task right: rung if something of it can start, silent until its gate opens if not. What the bell was is
-- read where it is not given.
local function set_right(task, bell)
  local sight, opens = look(task)
  if sight == 'startable' then
    ring(task, false, bell)
  elseif sight == 'shut' then
    redis.call('HSET', bells, task, 'shut')
    if opens then redis.call('ZADD', openings, opens, task) end
  end
end

-- The tasks of which something is ready.
local function waiting_tasks()
  local all, names = redis.call('HGETALL', active), {}
  for i = 1, #all, 2 do
    if struct.unpack('>I4', all[i + 1]) > 0 then names[#names + 1] = all[i] end
  end
  return names
end

-- Sets right the bells of tasks of which something became ready, and of those behind a gate that may have opened.
local function ring_for_moves()
  for task in pairs(ready_tasks) do
    local bell = redis.call('HGET', bells, task)
    if bell ~= 'rung' then set_right(task, bell) end
  end
  if has_freed then
    local all = redis.call('HGETALL', bells)
    for i = 1, #all, 2 do
      if all[i + 1] == 'shut' and not ready_tasks[all[i]] then set_right(all[i]) end
    end
  end
end

-- The next moment at which time alone may make something startable or end it; `tick_at` is that of the schedules.
local function next_moment(tick_at)
  local lapse = score_of(redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES'))
  if lapse then
    local _, _, _, reap_after = guard_of()
    lapse = math.max(lapse, reap_after)
  end
  local soonest = math.min(lapse or FAR, tonumber(tick_at or FAR))
  for _, key in ipairs({ scheduled, expiries, openings }) do
    soonest = math.min(soonest, score_of(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')) or FAR)
  end
  return soonest
end

-- Lets the keeper know the next moment: the one that waits longest keeps the time of the queue. It is told an earlier
-- moment than it knows; of a later one it hears when its own has come. While an alarm is on its way to a claim there is
-- nothing to tell.
local function tell_keeper()
  while #all_waiters() > 0 do
    local alarm_taken, keeper, tick_at = unpack(redis.call('HMGET', meta, 'alarm_taken', 'keeper', 'tick_at'))
    if alarm_taken then return end
    local waiter, moment = waiting_list[1], next_moment(tick_at)
    -- Each handle numbers its own waits, so that the number alone may be another's.
    local is_known = keeper and string.sub(keeper, 1, 22) == string.sub(waiter, 1, 22)
    if is_known and struct.unpack('>I6', keeper, 23) <= moment then return end
    local told = struct.pack('>I6', moment)
    local number, worker = string.sub(waiter, 1, 6), string.sub(waiter, 23, 38)
    if tell(string.sub(waiter, 7, 22), 'm', number .. worker .. struct.pack('>I6', now) .. told) then
      redis.call('HSET', meta, 'keeper', string.sub(waiter, 1, 22) .. told)
      return
    end
    forget_waiter(1)
  end
end

-- Gives back the bells that a worker has taken and will not use.
local function give_back(worker)
  local tasks = redis.call('HGET', popped, worker)
  if tasks then
    redis.call('HDEL', popped, worker)
    for task in string.gmatch(tasks, '%Z+') do
      ring(task, true)
    end
  end
end

-- Takes a worker out of the line, whichever wait of it stands there.
local function leave_line(worker)
  for index = #all_waiters(), 1, -1 do
    if string.sub(waiting_list[index], 23, 38) == worker then forget_waiter(index) end
  end
end

-- A worker has nothing in hand: it stands in no line, and what it took and has not answered by a claim goes back.
local function empty_hands(worker)
  leave_line(worker)
  give_back(worker)
  if redis.call('HGET', meta, 'alarm_taken') == worker then redis.call('HDEL', meta, 'alarm_taken') end
end

-- Tells those who wait for the end of a job that has now ended.
local function tell_ends()
  if #ended == 0 or redis.call('EXISTS', awaited) == 0 then return end
  local told = read_fields(awaited, ended)
  local gone = {}
  for i, id in ipairs(ended) do
    if told[i] then
      gone[#gone + 1] = id
      for at = 1, #told[i], 16 do
        tell(string.sub(told[i], at, at + 15), 'e', id)
      end
    end
  end
  call_in_pieces('HDEL', awaited, gone)
end
