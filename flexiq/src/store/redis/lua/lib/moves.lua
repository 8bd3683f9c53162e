-- Moves of jobs between states, gathered and written together: removals first, because a full Redis refuses a step
-- that begins by adding.
local removed, added, changed = {}, {}, {}
local moved, ready_tasks, has_freed, ended = {}, {}, false, {}
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

-- Adds to the counts of a hash; those of nothing are deleted.
local function write_counts_of(key, fields, jobs)
  if #fields == 0 then return end
  local before, written, gone = read_fields(key, fields), {}, {}
  for i, field in ipairs(fields) do
    local now_jobs = (before[i] or 0) + jobs[i]
    if now_jobs == 0 then
      gone[#gone + 1] = field
    else
      written[#written + 1] = field
      written[#written + 1] = text_of(now_jobs)
    end
  end
  call_in_pieces('HDEL', key, gone)
  call_in_pieces('HSET', key, written)
end

local function write_counts()
  if has_partitions then of_partitions().count_moves() end
  local of_waiting, of_others = { fields = {}, jobs = {} }, { fields = {}, jobs = {} }
  for state, by_task in pairs(moved) do
    for task, jobs in pairs(by_task) do
      if jobs ~= 0 then
        local to = state == READY and of_waiting or of_others
        to.fields[#to.fields + 1] = state == READY and task or state .. task
        to.jobs[#to.fields] = jobs
      end
    end
  end
  write_counts_of(waiting, of_waiting.fields, of_waiting.jobs)
  write_counts_of(counts, of_others.fields, of_others.jobs)
  moved = {}
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
  write_counts()
  removed, added, changed = {}, {}, {}
end

-- Writes what was gathered.
local function write_moves()
  write_jobs()
  if has_partitions then of_partitions().settle() end
end
