-- Moves of jobs between states, gathered and written together: removals first, because a full Redis refuses a step
-- that begins by adding.
local removed, added, changed, has_changed = {}, {}, {}, false
local moved, ready_tasks, has_freed, ended = {}, {}, false, {}

local function remove(key, member)
  local list = removed[key]
  if list then list[#list + 1] = member else removed[key] = { member } end
end

local function add(key, score, member)
  local list = added[key]
  if not list then
    list = {}
    added[key] = list
  end
  list[#list + 1] = score
  list[#list + 1] = member
end

-- A run to be written: as its fields, or as the text that it is.
local function change(id, job)
  changed[id] = job
  has_changed = true
end

-- Counts that so many jobs of a task have come into a state, or left it.
local function count(state, task, jobs)
  local by_task = moved[state]
  if not by_task then
    by_task = {}
    moved[state] = by_task
  end
  by_task[task] = (by_task[task] or 0) + jobs
end

-- Takes a job out of the state that it is in.
local function leave_state(id, job)
  if job.state == SCHEDULED then
    remove(scheduled, scheduled_member(id, job.rank, job.task))
  elseif job.state == READY then
    remove(lanes, place(job.task, job.rank, job.due, id))
  elseif job.state == RUNNING then
    remove(leases, id)
    has_freed = true
    if job.cancel == 1 then remove(called, job.worker .. id) end
  else
    remove(ended_keys[job.state], id)
  end
  count(job.state, job.task, -1)
end

-- A job is ready, or will be when it is due. What is known to expire does so unless it starts.
local function make_pending(id, job, state)
  local was_waiting = job.state == SCHEDULED or job.state == READY
  leave_state(id, job)
  job.state = state
  if state == READY then
    job.reason = 0
    add(lanes, 0, place(job.task, job.rank, job.due, id))
    ready_tasks[job.task] = true
  else
    add(scheduled, job.due, scheduled_member(id, job.rank, job.task))
  end
  if job.expires > 0 and not was_waiting then add(expiries, job.expires, id) end
  count(state, job.task, 1)
  change(id, job)
end

-- A job has ended, and is kept so long.
local function end_job(id, job, state, reason, keep)
  if job.expires > 0 and (job.state == SCHEDULED or job.state == READY) then remove(expiries, id) end
  leave_state(id, job)
  job.state, job.reason, job.ended, job.kept = state, reason, now, math.min(now + keep, FAR)
  add(ended_keys[state], job.kept, id)
  count(state, job.task, 1)
  change(id, job)
  ended[#ended + 1] = id
end

-- The end of most jobs: a success of which no cancel waits to be told.
local function succeed(id, text, keep)
  local kept = math.min(now + keep, FAR)
  local task = task_of(text)
  remove(leases, id)
  has_freed = true
  add(ended_keys[SUCCEEDED], kept, id)
  count(RUNNING, task, -1)
  count(SUCCEEDED, task, 1)
  change(id, succeeded_run(text, struct.pack('>I6I6', now, kept)))
  ended[#ended + 1] = id
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
  if has_changed then
    local fields = {}
    for id, job in pairs(changed) do
      fields[#fields + 1] = id
      fields[#fields + 1] = type(job) == 'string' and job or write_run(job)
    end
    call_in_pieces('HSET', runs, fields)
  end
  for key, members in pairs(added) do
    call_in_pieces('ZADD', key, members)
  end
  write_counts()
  removed, added, changed, has_changed = {}, {}, {}, false
end
