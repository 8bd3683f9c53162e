-- finish: frees the leases of runs that have ended, and moves their jobs by what became of them. Only the worker that
-- holds the newest run may do so. The first part of a turn.
local new_values, new_holds = {}, {}
-- The finishes so far: their answers, 'd'one or 'l'ost, and the jobs that are done, for one may be named twice.
local finished, answers, is_done = 0, {}, {}

-- When a job that waits for a named limit was called while it ran, if it was.
local function called_at(id)
  local due = redis.call('ZSCORE', early, id)
  if not due then return nil end
  redis.call('ZREM', early, id)
  return tonumber(due)
end

-- Keeps how a run has set its job back; an error is behind a mark.
local function set_back(id, job, kind, death, error)
  job.error = tail_with_story(job.error)
  of_story().keep_setback(id, job.run, job.failures, kind, death, string.sub(error, 2))
end

-- A job that was cancelled while it ran ends as cancelled, unless the run succeeded. Such an end moves no counter.
local function finish_one(id, text, head, body)
  local jobs = of_life()
  local job = jobs.read_run(text)
  local _, _, kind, reason, is_moment, due, keep, held, length, setback, notes_at =
    struct.unpack('>c16I4BBBI6I6BI6B', head)
  if notes_at <= #head then
    job.error = tail_with_story(job.error)
    of_story().keep_notes(id, string.sub(head, notes_at))
  end
  if held > 0 then
    local name = held == 1 and '' or held == 2 and job.task or job.lane
    new_holds[name] = math.max(new_holds[name] or 0, math.min(now + length, FAR))
  end
  if (kind == 1 or kind == 2) and body ~= '' then job.error = body end
  if kind == 0 then
    if body ~= '' then
      new_values[#new_values + 1] = id
      new_values[#new_values + 1] = body
    end
    jobs.end_job(id, job, SUCCEEDED, 0, keep)
  elseif job.cancel > 0 or kind == 4 then
    jobs.end_job(id, job, CANCELLED, 0, DAY)
  elseif kind == 1 then
    -- A failed run has been started in earnest: its job does not expire any more. A deferral leaves the expiry.
    if reason == 2 or reason == 3 then
      job.deferrals = job.deferrals + 1
    else
      set_back(id, job, setback, 0, body)
      job.failures, job.expires = job.failures + 1, 0
    end
    local called_due = reason == 3 and called_at(id)
    due = math.min(moment_of(is_moment, due), called_due or FAR)
    -- One that was called before it could wait keeps its old place.
    if due > now or not called_due then job.due = math.max(due, now) end
    job.reason = reason
    jobs.make_pending(id, job, due > now and SCHEDULED or READY)
  elseif kind == 2 then
    set_back(id, job, setback, reason + 1, body)
    if reason == 2 then job.deferrals = job.deferrals + 1 else job.failures = job.failures + 1 end
    jobs.end_job(id, job, DEAD, reason, KEEP_DEAD)
  else
    if kind == 5 then job.deferrals = job.deferrals + 1 end
    jobs.make_pending(id, job, READY)
  end
end

-- Carries out so many finishes from there on: of each its lease, transition and notes, and its value or error.
local function finish_each(worker, at, finishes)
  local ids = {}
  for i = 1, finishes do
    ids[i] = string.sub(ARGV[at + 2 * i - 2], 1, 16)
  end
  for i, text in ipairs(read_fields(runs, ids)) do
    local head = ARGV[at + 2 * i - 2]
    finished = finished + 1
    if text and not is_done[ids[i]] and is_held(text, string.sub(head, 17, 20) .. worker) then
      is_done[ids[i]] = true
      answers[finished] = 'd'
      finish_one(ids[i], text, head, ARGV[at + 2 * i - 1])
    else
      answers[finished] = 'l'
    end
  end
end

-- What becomes of all runs of one text that succeed; false if this worker does not hold them.
local function plan_of(text, lease, times)
  if not is_held(text, lease) then return false end
  local succeeded = '\3\0' .. string.sub(text, 3, 24) .. times .. string.sub(text, 37)
  return { lane = lane_of(text), text = succeeded, is_called = string.byte(text, 3) == 1, jobs = 0 }
end

-- Carries out so many successes without a value from there on, all with the same number of their run and kept equally
-- long. Most runs have the text of another: each text is looked at once, and made anew once.
local function succeed_all(worker, at, jobs, run, keep)
  local texts = redis.call('HMGET', runs, unpack(ARGV, at, at + jobs - 1))
  local lease, kept = run .. worker, math.min(now + keep, FAR)
  local times, kept_text = struct.pack('>I6I6', now, kept), text_of(kept)
  local freed, stays, plans = list_of(removed, leases), list_of(added, ended_keys[SUCCEEDED]), {}
  local at_freed, at_stays, at_changed, at_ended = #freed, #stays, #changed, #ended
  for i = 1, jobs do
    local id, text = ARGV[at + i - 1], texts[i]
    local plan = text and plans[text]
    if text and plan == nil then
      plan = plan_of(text, lease, times)
      plans[text] = plan
    end
    finished = finished + 1
    if plan and not is_done[id] then
      is_done[id] = true
      answers[finished] = 'd'
      plan.jobs = plan.jobs + 1
      if plan.is_called then remove(called, worker .. id) end
      freed[at_freed + 1] = id
      changed[at_changed + 1], changed[at_changed + 2] = id, plan.text
      stays[at_stays + 1], stays[at_stays + 2] = kept_text, id
      ended[at_ended + 1] = id
      at_freed, at_stays, at_changed, at_ended = at_freed + 1, at_stays + 2, at_changed + 2, at_ended + 1
    else
      answers[finished] = 'l'
    end
  end
  for _, plan in pairs(plans) do
    if plan then
      has_freed = true
      count(RUNNING, plan.lane, -plan.jobs)
      count(SUCCEEDED, plan.lane, plan.jobs)
    end
  end
end

-- Carries out the finishes of a turn, from there on; answers where what follows begins.
local function finish(worker, at)
  local groups, others = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  for _ = 1, groups do
    local run, keep, jobs = struct.unpack('>c4I6I4', ARGV[at])
    succeed_all(worker, at + 1, jobs, run, keep)
    at = at + 1 + jobs
  end
  finish_each(worker, at, others)
  local grown = {}
  for state = SUCCEEDED, EXPIRED do
    grown[state] = #list_of(added, ended_keys[state]) > 0
  end
  write_moves()
  free_keys()
  call_in_pieces('HSET', values, new_values)
  for state, has_grown in pairs(grown) do
    if has_grown then prune(state, finished * 2) end
  end
  write_counts()
  if next(new_holds) then
    for name, held_until in pairs(new_holds) do
      of_holds().hold(name, held_until)
    end
    if has_partitions then of_partitions().settle() end
  end
  return at + 2 * others
end
