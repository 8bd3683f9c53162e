-- Moves of jobs between states, gathered and written together: removals first, because a full Redis refuses a step
-- that begins by adding.
local removed, added, changed = {}, {}, {}
local moved, ready_tasks, has_freed, ended = {}, {}, false, {}

local function list_of(lists, key)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  return list
end

local function remove(key, member)
  local list = list_of(removed, key)
  list[#list + 1] = member
end

local function add(key, score, member)
  local list = list_of(added, key)
  list[#list + 1] = score
  list[#list + 1] = member
end

-- Counts that so many jobs of a task have come into a state, or left it.
local function count(state, task, jobs)
  local by_task = list_of(moved, state)
  by_task[task] = (by_task[task] or 0) + jobs
end

local function write_counts()
  for state, by_task in pairs(moved) do
    for task, jobs in pairs(by_task) do
      if jobs ~= 0 then
        local key, field = counts, state .. task
        if state == READY then key, field = waiting, task end
        if redis.call('HINCRBY', key, field, jobs) == 0 then redis.call('HDEL', key, field) end
      end
    end
  end
  moved = {}
end

-- Writes what was gathered.
local function write_moves()
  for key, members in pairs(removed) do
    call_in_pieces(key == called and 'SREM' or 'ZREM', key, members)
  end
  call_in_pieces('HSET', runs, changed)
  for key, members in pairs(added) do
    call_in_pieces('ZADD', key, members)
  end
  write_counts()
  removed, added, changed = {}, {}, {}
end
