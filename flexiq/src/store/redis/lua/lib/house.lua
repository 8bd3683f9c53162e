-- What time alone does to jobs: expire, promote, reap. Each is bounded; what is left is done by the next step.
local MOST_MOVED, MOST_REAPED = '1000', '100'

local function expire(ids)
  local texts, jobs = read_fields(runs, ids), of_life()
  for i, id in ipairs(ids) do
    jobs.end_job(id, jobs.read_run(texts[i]), EXPIRED, 0, DAY)
  end
end

-- Makes scheduled jobs ready that are due. They are as old as their due time.
local function promote(due)
  local ids = {}
  for i = 1, #due, 2 do
    ids[#ids + 1] = string.sub(due[i], 1, 16)
  end
  local texts, jobs = read_fields(runs, ids), of_life()
  for i, id in ipairs(ids) do
    if texts[i] then
      jobs.make_pending(id, jobs.read_run(texts[i]), READY)
    else
      local member = due[2 * i - 1]
      local rank, lane = string.byte(member, 17), string.sub(member, 18)
      local task, is_partition = task_of(lane)
      remove(scheduled, member)
      if is_partition then remove(delayed, lane .. '\0' .. id) end
      add(lanes, 0, place(lane, rank, tonumber(due[2 * i]), id))
      count(SCHEDULED, lane, -1)
      count(READY, lane, 1)
      ready_tasks[task] = true
    end
  end
end

-- Takes jobs back from workers that did not renew their leases.
local function reap(ids)
  local texts, jobs = read_fields(runs, ids), of_life()
  for i, id in ipairs(ids) do
    local job = jobs.read_run(texts[i])
    local is_release = job.lapse == 1
    if job.cancel > 0 then
      jobs.end_job(id, job, CANCELLED, 0, DAY)
    elseif is_release then
      jobs.make_pending(id, job, READY)
    else
      job.losses = job.losses + 1
      -- A loss is a start in earnest: the job does not expire any more.
      job.expires = 0
      job.error = tail_with_story(job.error)
      of_story().keep_loss(id, job, job.losses > job.max_losses)
      if job.losses > job.max_losses then
        jobs.end_job(id, job, DEAD, 3, KEEP_DEAD)
      else
        jobs.make_pending(id, job, READY)
      end
    end
  end
end

-- Keeps house; answers whether something expired still stands among the ready, and whether more is due.
local function keep_house()
  -- Expiry after reaping and before promotion: what is given back, or becomes due, when its time is over does not start.
  local lapsed = redis.call('ZRANGEBYSCORE', leases, '-inf', now_text, 'LIMIT', '0', MOST_REAPED)
  if #lapsed > 0 and not may_reap() then lapsed = {} end
  if #lapsed > 0 then
    reap(lapsed)
    write_moves()
  end
  local expired = redis.call('ZRANGEBYSCORE', expiries, '-inf', now_text, 'LIMIT', '0', MOST_MOVED)
  if #expired > 0 then
    expire(expired)
    write_moves()
  end
  local due = redis.call('ZRANGEBYSCORE', scheduled, '-inf', now_text, 'WITHSCORES', 'LIMIT', '0', MOST_MOVED)
  if #due > 0 then
    promote(due)
    write_moves()
  end
  free_keys()
  return #expired == tonumber(MOST_MOVED), #due == 2 * MOST_MOVED or #lapsed == tonumber(MOST_REAPED)
end

-- Deletes ended jobs.
local function delete_ended(state, ids)
  if #ids == 0 then return end
  local texts = read_fields(runs, ids)
  call_in_pieces('ZREM', ended_keys[state], ids)
  call_in_pieces('HDEL', bodies, ids)
  call_in_pieces('HDEL', values, ids)
  call_in_pieces('HDEL', runs, ids)
  if has_keyed() then call_in_pieces('HDEL', KEYS[35], ids) end
  local told = {}
  for i, id in ipairs(ids) do
    count(state, lane_of(texts[i]), -1)
    if has_story(texts[i]) then told[#told + 1] = id end
  end
  if #told > 0 then of_story().delete(told) end
end

-- Prunes at most `most` jobs that have ended in a state: those over the number that is kept whatever their time, or else
-- those whose time is over.
local function prune(state, most)
  local key, most_kept = ended_keys[state], state == SUCCEEDED and 100000 or 10000
  local excess = redis.call('ZCARD', key) - most_kept
  if excess > 0 then
    delete_ended(state, redis.call('ZRANGE', key, 0, math.min(excess, most) - 1))
  elseif excess > -most_kept then
    delete_ended(state, redis.call('ZRANGEBYSCORE', key, '-inf', now_text, 'LIMIT', '0', most))
  end
end
