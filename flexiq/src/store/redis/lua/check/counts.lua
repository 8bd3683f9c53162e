-- Counters, each against what it counts, in a step for each state. What is ready is counted by the order of the lanes
-- itself, whatever its length; of the others all are counted together, and each task for itself where there are not too
-- many for one step.
local MOST_RECOUNTED = 200000

local function miscount(task, kept, there, what)
  if kept == there then return false end
  local counted = string.format('the count of jobs that are %s is %.0f', what, kept)
  return found('count', task, '', counted, string.format('it should be %.0f', there))
end

-- Shows each task of which something stands in the lanes.
local function tasks_in_lanes()
  local tasks, low = {}, '-'
  while true do
    local member = redis.call('ZRANGEBYLEX', lanes, low, '+', 'LIMIT', '0', '1')[1]
    if not member then return tasks end
    local task = string.match(member, '^[^%z\1\2]*')
    tasks[task] = true
    low = '(' .. task .. '\3'
  end
end

-- The jobs that stand in an order, by their tasks.
local function tally(state, key)
  local by_task = {}
  local members = redis.call('ZRANGE', key, 0, state == RUNNING and -2 or -1)
  local texts = state ~= SCHEDULED and read_fields(runs, members)
  for i, member in ipairs(members) do
    local lane
    if not texts then
      lane = string.sub(member, 18)
    elseif texts[i] then
      lane = lane_of(texts[i])
    else
      -- Its run is lost; what is no job at all counts as nothing.
      local job = read_body(redis.call('HGET', bodies, member) or '')
      lane = job and job.lane
    end
    if lane then
      local task = task_of(lane)
      by_task[task] = (by_task[task] or 0) + 1
    end
  end
  return by_task
end

-- The jobs in an order by their tasks, where there are not too many for one step; else nil, and finds if their sum is not
-- what is kept.
local function count_order(state, key, sum)
  local all = state == RUNNING and leased() or redis.call('ZCARD', key)
  if all <= (wants_repair and sum ~= all and MOST_RECOUNTED or most_counted) then return tally(state, key) end
  if sum ~= all then
    local counted = string.format('the count of jobs that are %s is %.0f', STATES[state], sum)
    found('count', '', '', counted, string.format('it should be %.0f, too many to count by task', all), false)
  end
  return nil
end

-- What is active of each task: ready, of that in partitions, and running.
local function count_active()
  local kept, tasks, sum, all = {}, tasks_in_lanes(), 0, redis.call('HGETALL', active)
  for i = 1, #all, 2 do
    if all[i] ~= MANY_COUNTS then
      kept[all[i]] = { struct.unpack(ACTIVE, #all[i + 1] == #NONE_ACTIVE and all[i + 1] or NONE_ACTIVE) }
      sum = sum + kept[all[i]][3]
      tasks[all[i]] = true
    end
  end
  local running = count_order(RUNNING, leases, sum)
  for task in pairs(running or {}) do
    tasks[task] = true
  end
  for task in pairs(tasks) do
    local low, high = range_of(task)
    local before = kept[task] or { 0, 0, 0 }
    local in_partitions = redis.call('ZLEXCOUNT', lanes, '[' .. task .. '\2', '(' .. task .. '\3')
    local ready = redis.call('ZLEXCOUNT', lanes, low, high) + in_partitions
    local runs_now = running and (running[task] or 0) or before[3]
    local is_wrong = miscount(task, before[1], ready, 'ready')
    is_wrong = miscount(task, before[2], in_partitions, 'ready in partitions') or is_wrong
    is_wrong = miscount(task, before[3], runs_now, 'running') or is_wrong
    if is_wrong then
      if ready + runs_now == 0 then
        redis.call('HDEL', active, task)
      else
        redis.call('HSET', active, task, struct.pack(ACTIVE, ready, in_partitions, runs_now))
      end
      ready_tasks[task] = true
      has_freed = true
    end
  end
end

-- The jobs that are neither ready nor running, by their state.
local function count_others(state, key)
  local kept, sum, all = {}, 0, redis.call('HGETALL', counts)
  for i = 1, #all, 2 do
    if tonumber(string.sub(all[i], 1, 1)) == state then
      kept[string.sub(all[i], 2)] = tonumber(all[i + 1])
      sum = sum + tonumber(all[i + 1])
    end
  end
  local there = count_order(state, key, sum)
  if not there then return end
  for task in pairs(kept) do
    there[task] = there[task] or 0
  end
  for task, jobs in pairs(there) do
    if miscount(task, kept[task] or 0, jobs, STATES[state]) then
      if jobs == 0 then
        redis.call('HDEL', counts, state .. task)
      else
        redis.call('HSET', counts, state .. task, text_of(jobs))
      end
    end
  end
end

-- The partitions of a task together.
local function count_startable()
  if redis.call('HLEN', partitions) > most_counted then return end
  local there, all = {}, redis.call('HGETALL', partitions)
  for i = 1, #all, 2 do
    local task = task_of(all[i])
    there[task] = (there[task] or 0) + struct.unpack('>I4', all[i + 1], 19)
  end
  local common = redis.call('HGETALL', partitioned)
  for i = 1, #common, 2 do
    local served, startable = struct.unpack('>I6I6', common[i + 1])
    local jobs = there[common[i]] or 0
    if miscount(common[i], startable, jobs, 'startable in partitions') then
      redis.call('HSET', partitioned, common[i], struct.pack('>I6I6', served, jobs))
    end
  end
end

-- The mark that stands last among the leases.
local function look_at_mark()
  if redis.call('ZSCORE', leases, LAST_LEASE) then return end
  if found('count', '', '', 'the mark behind the leases is gone', 'running jobs are counted by it') then
    redis.call('ZADD', leases, text_of(FAR), LAST_LEASE)
  end
end

-- One step for each: the cursor says which.
local function look_at_counts()
  local at = tonumber(cursor)
  -- What is ready and running was counted by the first.
  cursor = text_of(at == 1 and SUCCEEDED or at + 1)
  if at == 0 then
    look_at_mark()
    count_active()
  elseif at == 1 then
    count_others(SCHEDULED, scheduled)
  elseif at > EXPIRED then
    count_startable()
    cursor = '0'
  else
    count_others(at, ended_keys[at])
  end
end
