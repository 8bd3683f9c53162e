-- What time alone does to jobs: expire, promote, reap. Each is bounded; what is left is done by the next step.
local MOST_MOVED, MOST_REAPED = 1000, 100

local function expire()
  local ids = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, MOST_MOVED)
  if #ids == 0 then return false end
  local texts = read_fields(runs, ids)
  for i, id in ipairs(ids) do
    end_job(id, read_run(texts[i]), EXPIRED, 0, DAY)
  end
  return #ids == MOST_MOVED
end

-- Makes scheduled jobs ready that are due. They are as old as their due time.
local function promote()
  local due = redis.call('ZRANGEBYSCORE', scheduled, '-inf', now, 'WITHSCORES', 'LIMIT', 0, MOST_MOVED)
  if #due == 0 then return false end
  local ids = {}
  for i = 1, #due, 2 do
    ids[#ids + 1] = string.sub(due[i], 1, 16)
  end
  local texts = read_fields(runs, ids)
  for i, id in ipairs(ids) do
    if texts[i] then
      make_pending(id, read_run(texts[i]), READY)
    else
      local member = due[2 * i - 1]
      local rank, task = string.byte(member, 17), string.sub(member, 18)
      remove(scheduled, member)
      add(lanes, 0, place(task, rank, tonumber(due[2 * i]), id))
      count(SCHEDULED, task, -1)
      count(READY, task, 1)
      ready_tasks[task] = true
    end
  end
  return #ids == MOST_MOVED
end

-- Takes jobs back from workers that did not renew their leases.
local function reap()
  local ids = redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, MOST_REAPED)
  if #ids == 0 or not may_reap() then return false end
  local texts = read_fields(runs, ids)
  for i, id in ipairs(ids) do
    local job = read_run(texts[i])
    local is_release = job.lapse == 1
    if job.cancel > 0 then
      end_job(id, job, CANCELLED, 0, DAY)
    elseif is_release then
      make_pending(id, job, READY)
    else
      job.losses = job.losses + 1
      -- A loss is a start in earnest: the job does not expire any more.
      job.expires = 0
      if job.losses > job.max_losses then
        end_job(id, job, DEAD, 3, KEEP_DEAD)
      else
        make_pending(id, job, READY)
      end
    end
  end
  return #ids == MOST_REAPED
end

-- Keeps house; answers whether something expired still stands among the ready, and whether more is due.
local function keep_house()
  -- Expiry after reaping and before promotion: what is given back, or becomes due, when its time is over does not start.
  local has_lapsed = reap()
  write_moves()
  local has_expired = expire()
  write_moves()
  local has_due = promote()
  write_moves()
  return has_expired, has_due or has_lapsed
end

-- Deletes ended jobs.
local function delete_ended(state, ids)
  if #ids == 0 then return end
  local texts = read_fields(runs, ids)
  call_in_pieces('ZREM', ended_keys[state], ids)
  call_in_pieces('HDEL', bodies, ids)
  call_in_pieces('HDEL', values, ids)
  call_in_pieces('HDEL', runs, ids)
  for i = 1, #ids do
    count(state, task_of(texts[i]), -1)
  end
end

-- Prunes at most `most` jobs of each state: those over the number that is kept whatever their time, or else those whose
-- time is over.
local function prune(most)
  for state = SUCCEEDED, EXPIRED do
    local excess = redis.call('ZCARD', ended_keys[state]) - MOST_KEPT[state]
    if excess > 0 then
      delete_ended(state, redis.call('ZRANGE', ended_keys[state], 0, math.min(excess, most) - 1))
    elseif excess > -MOST_KEPT[state] then
      delete_ended(state, redis.call('ZRANGEBYSCORE', ended_keys[state], '-inf', now, 'LIMIT', 0, most))
    end
  end
  write_counts()
end
