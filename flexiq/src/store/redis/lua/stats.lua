-- stats: what a queue holds, and what its gates let start. It only reads, and no more than its bounds, however much waits.
-- ARGV  4 leases that are looked at, 5 heads of lanes that are looked at in all, 6 heads of each task with partitions at least
-- Returns pending and running jobs, how many of the ready ones could start, the queue's copy of its own limits, and what
-- shuts its gate; then of each task: its name, its jobs by state, how many are in partitions, how many could start, since when
-- the oldest is ready, when its oldest run began ('' for none), the copy of its limits, and what shuts its gate. What shuts a
-- gate is told as in lib/shut.lua
local most_leases, most_heads, least_heads = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local names, by_task = {}, {}

local function of(name)
  if not by_task[name] then
    names[#names + 1] = name
    by_task[name] = { in_partitions = 0 }
  end
  return by_task[name]
end

local with_partitions = 0
local function read_counts()
  local all = redis.call('HGETALL', active)
  for i = 1, #all, 2 do
    if all[i] ~= MANY_COUNTS then
      local task, ready, in_partitions, running = of(all[i]), struct.unpack(ACTIVE, all[i + 1])
      task[READY], task.in_partitions, task[RUNNING] = ready, in_partitions, running
      if in_partitions > 0 then with_partitions = with_partitions + 1 end
    end
  end
  local others = redis.call('HGETALL', counts)
  for i = 1, #others, 2 do
    if others[i] ~= MANY_COUNTS then
      of(string.sub(others[i], 2))[tonumber(string.sub(others[i], 1, 1))] = tonumber(others[i + 1])
    end
  end
end

-- The oldest of the heads between two places, one for each lane and priority: at most so many are looked at.
local function oldest_between(low, high, looks)
  local oldest
  for _ = 1, looks do
    local head = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', '0', '1')[1]
    if not head then break end
    local lane, order = string.sub(head, 1, -25), struct.unpack('>I7', head, #head - 22)
    local rank = math.floor(order / 2 ^ 44)
    oldest = math.min(oldest or FAR, order % 2 ^ 44)
    low = '[' .. place(lane, rank + 1, 0, '')
  end
  return oldest
end

-- The lanes of a task's partitions stand together, apart from the task's own.
local function oldest_of(name, task)
  local oldest = oldest_between('[' .. name .. '\0', '(' .. name .. '\1', most_heads)
  if task.in_partitions == 0 then return oldest end
  local looks = math.max(math.floor(most_heads / with_partitions), least_heads)
  local of_turns = oldest_between('[' .. name .. '\2', '(' .. name .. '\3', looks)
  if oldest and of_turns then return math.min(oldest, of_turns) end
  return oldest or of_turns
end

local function admitted_of(gate, jobs)
  if jobs == 0 then return 0 end
  return (admit(gate, jobs))
end

read_counts()
local oldest_runs = {}
for _, run in ipairs(running_jobs(most_leases)) do
  oldest_runs[run.task] = math.min(oldest_runs[run.task] or FAR, run.started)
end
local fields = { '' }
for i, name in ipairs(names) do
  fields[i + 1] = name
end
local gates, of_tasks, startable = read_fields(limits, fields), {}, 0
for i, name in ipairs(names) do
  local task, gate = by_task[name], read_gate(name, gates[i + 1])
  local ready, open = task[READY] or 0, 0
  if task.in_partitions > 0 then open = of_partitions().read_task(name).startable end
  local admitted = admitted_of(gate, ready - task.in_partitions + open)
  startable = startable + admitted
  local parts = { name }
  for state = SCHEDULED, EXPIRED do
    parts[#parts + 1] = text_of(task[state] or 0)
  end
  parts[#parts + 1] = text_of(task.in_partitions)
  parts[#parts + 1] = text_of(admitted)
  local oldest = ready > 0 and oldest_of(name, task)
  parts[#parts + 1] = oldest and text_of(oldest) or ''
  parts[#parts + 1] = oldest_runs[name] and text_of(oldest_runs[name]) or ''
  parts[#parts + 1] = gates[i + 1] or ''
  add_shut(parts, gate, most_leases)
  of_tasks[i] = parts
end
local gate = read_gate('', gates[1])
local answer = { text_of(pending_jobs()), text_of(leased()), text_of(admitted_of(gate, startable)), gates[1] or '' }
add_shut(answer, gate, most_leases)
answer[#answer + 1] = of_tasks
return answer
