-- Moves of jobs between states, gathered and written together: removals first, because a full Redis refuses a step
-- that begins by adding.
local removed, added, changed = {}, {}, {}
local moved, moved_in_partitions, ready_tasks, has_freed, ended = {}, {}, {}, false, {}
-- What is done where there are partitions, in partitions.lua.
local of_partitions

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

-- Counts that so many jobs of a lane have come into a state, or left it.
local function count(state, lane, jobs)
  local by_lane = list_of(moved, state)
  by_lane[lane] = (by_lane[lane] or 0) + jobs
  if jobs < 0 and state <= READY then made_room[lane] = true end
end

-- Adds to what is active of tasks; one of which nothing is goes.
local function write_active(names)
  local ready, running, gone, written = list_of(moved, READY), list_of(moved, RUNNING), {}, {}
  for i, before in ipairs(read_fields(active, names)) do
    local task = names[i]
    local was_ready, was_in_partitions, was_running = struct.unpack(ACTIVE, before or NONE_ACTIVE)
    local now_active = struct.pack(ACTIVE, was_ready + (ready[task] or 0),
      was_in_partitions + (moved_in_partitions[task] or 0), was_running + (running[task] or 0))
    if now_active == NONE_ACTIVE then
      gone[#gone + 1] = task
    else
      written[#written + 1], written[#written + 2] = task, now_active
    end
  end
  call_in_pieces('HDEL', active, gone)
  call_in_pieces('HSET', active, written)
end

-- Adds to the numbers of jobs that are not active, by state and task; those of nothing are deleted.
local function write_others(fields, jobs)
  local gone, written = {}, {}
  for i, before in ipairs(read_fields(counts, fields)) do
    local now_jobs = (before or 0) + jobs[i]
    if now_jobs == 0 then
      gone[#gone + 1] = fields[i]
    else
      written[#written + 1], written[#written + 2] = fields[i], text_of(now_jobs)
    end
  end
  call_in_pieces('HDEL', counts, gone)
  call_in_pieces('HSET', counts, written)
end

local function write_counts()
  if has_partitions then of_partitions().count_moves() end
  local names, is_named, fields, jobs_of = {}, {}, {}, {}
  for state, by_task in pairs(moved) do
    for task, jobs in pairs(by_task) do
      if state ~= READY and state ~= RUNNING then
        fields[#fields + 1] = state .. task
        jobs_of[#fields] = jobs
      elseif not is_named[task] then
        names[#names + 1], is_named[task] = task, true
      end
    end
  end
  if #names > 0 then write_active(names) end
  if #fields > 0 then write_others(fields, jobs_of) end
  moved, moved_in_partitions = {}, {}
end

-- Writes what was gathered, and leaves partitions as they stand.
local function write_jobs()
  for key, members in pairs(removed) do
    call_in_pieces(key == called and 'SREM' or 'ZREM', key, members)
  end
  call_in_pieces('HSET', runs, changed)
  for key, members in pairs(added) do
    call_in_pieces('ZADD', key, members)
  end
  if story then story.write() end
  write_counts()
  removed, added, changed = {}, {}, {}
end

-- Writes what was gathered.
local function write_moves()
  write_jobs()
  if has_partitions then of_partitions().settle() end
end
