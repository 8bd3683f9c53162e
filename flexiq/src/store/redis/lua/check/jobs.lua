-- Jobs, by their bodies: whether each stands in the place that its state says, with all that goes with it.
local STATES = { [0] = 'scheduled', 'ready', 'running', 'succeeded', 'dead', 'cancelled', 'expired' }

-- Of jobs without a run, those that have ended all the same: what their runs counted is lost.
local function find_ended(ids)
  local ends = {}
  for state = SUCCEEDED, EXPIRED do
    for i, score in pairs(read_scores(ended_keys[state], ids)) do
      ends[i] = { state = state, kept = score }
    end
  end
  return ends
end

-- What a run may not say.
local function mend_run(id, job)
  local is_changed = false
  local function mend(is_broken, what, expected, change)
    if is_broken and found('contradiction', job.task, id, what, expected) then
      change()
      is_changed = true
    end
  end
  mend(job.state <= READY and job.cancel > 0, 'it is pending, and was told to stop', 'only what is running is told so',
    function() job.cancel = 0 end)
  mend(job.state == SCHEDULED and job.reason > 3 or job.state == DEAD and job.reason > 4,
    'the reason of its state is none that there is', 'a job is scheduled or dead for a reason',
    function() job.reason = 0 end)
  mend(job.state >= SUCCEEDED and (job.ended == 0 or job.kept == 0),
    'it has ended, and nothing says when or until when it is kept', 'what has ended is kept for a time',
    function()
      if job.ended == 0 then job.ended = now end
      if job.kept == 0 then job.kept = math.min(now + (job.state == DEAD and KEEP_DEAD or DAY), FAR) end
    end)
  if is_changed then redis.call('HSET', runs, id, of_life().write_run(job)) end
end

-- Puts a job where its state says.
local function look_for_place(id, job, scores)
  if job.state == RUNNING then
    local expected = 'a run has one, which its worker renews'
    if not scores.lease and found('no_lease', job.task, id, 'it is running without a lease', expected) then
      -- Whoever runs it renews it; if nobody does, it lapses like any other.
      local _, _, length = guard_of()
      redis.call('ZADD', leases, text_of(math.min(now + length, FAR)), id)
    end
  elseif job.state == READY then
    local what = 'it is ready, and stands in no lane'
    if not scores.lane and found('place', job.task, id, what, 'it stands in its own') then
      redis.call('ZADD', lanes, 0, place(job.lane, job.rank, job.due, id))
      ready_tasks[job.task] = true
      recount_later(job.lane)
    end
  elseif job.state == SCHEDULED then
    local what = 'it is scheduled, and does not stand among those'
    if scores.due ~= job.due and found('place', job.task, id, what, 'it stands there by its due time') then
      redis.call('ZADD', scheduled, text_of(job.due), scheduled_member(id, job.rank, job.lane))
    end
  elseif not scores.kept then
    local what = 'it has ended, and does not stand among the ' .. STATES[job.state]
    if found('place', job.task, id, what, 'it stands there until its retention is over') then
      redis.call('ZADD', ended_keys[job.state], text_of(job.kept), id)
    end
  end
end

-- What goes with a place.
local function look_for_rest(id, job, scores)
  local is_pending = job.state <= READY
  if is_pending and job.expires > 0 and scores.expiry ~= job.expires then
    local what = 'it can expire, and nobody looks when'
    if found('place', job.task, id, what, 'it stands among those that can') then
      redis.call('ZADD', expiries, text_of(job.expires), id)
    end
  end
  if job.state == SCHEDULED and job.lane ~= job.task and not scores.delayed then
    local what = 'it is scheduled, and its partition does not know'
    if found('place', job.task, id, what, 'it stands there, too') then
      redis.call('ZADD', delayed, 0, job.lane .. '\0' .. id)
      recount_later(job.lane)
    end
  end
  if job.state == RUNNING and job.cancel == 1 and redis.call('SISMEMBER', called, job.worker .. id) == 0 then
    local what = 'it is to stop, and nobody tells its worker'
    if found('place', job.task, id, what, 'it is told with the next heartbeat') then
      redis.call('SADD', called, job.worker .. id)
    end
  end
end

-- Reads jobs by their bodies. One whose run is lost is what the order says in which it stands.
local function read_all_jobs(ids, texts_of_bodies)
  local texts, jobs, lost = read_fields(runs, ids), {}, {}
  for i, id in ipairs(ids) do
    local body = read_body(texts_of_bodies[i])
    local job = texts[i] and read_text(texts[i])
    if not body or texts[i] and not job then
      found('foreign', '', id, 'what is kept of it cannot be read', 'it is as this version writes it', false)
    elseif not texts[i] then
      jobs[i], lost[#lost + 1] = body, i
      body.has_no_run = true
    else
      jobs[i] = job
    end
  end
  local lost_ids = {}
  for at, i in ipairs(lost) do
    lost_ids[at] = ids[i]
  end
  for at, ending in pairs(find_ended(lost_ids)) do
    local id, job = lost_ids[at], jobs[lost[at]]
    job.state, job.kept, job.ended = ending.state, ending.kept, now
    local what = 'it is ' .. STATES[job.state] .. ', and what its runs counted is gone'
    if found('contradiction', job.task, id, what, 'it is kept with the job') then
      redis.call('HSET', runs, id, of_life().write_run(job))
    end
  end
  return jobs
end

local function look_at_jobs()
  local pairs_read = scan('HSCAN', bodies)
  local ids = every_second(pairs_read, 1)
  local jobs = read_all_jobs(ids, every_second(pairs_read, 2))
  local waits, ready_at, later = {}, {}, {}
  for i, id in ipairs(ids) do
    local job = jobs[i]
    waits[i] = job and scheduled_member(id, job.rank, job.lane) or ''
    ready_at[i] = job and place(job.lane, job.rank, job.due, id) or ''
    later[i] = job and job.lane .. '\0' .. id or ''
  end
  local dues, places = read_scores(scheduled, waits), read_scores(lanes, ready_at)
  local deadlines, ends = read_scores(leases, ids), read_scores(expiries, ids)
  local delays, kept = read_scores(delayed, later), {}
  for state = SUCCEEDED, EXPIRED do
    kept[state] = read_scores(ended_keys[state], ids)
  end
  for i, id in ipairs(ids) do
    local job = jobs[i]
    if job then
      -- Of one that stands nowhere its due time tells.
      local is_later = dues[i] or not places[i] and job.due > now
      if job.has_no_run and job.state == READY and is_later then job.state = SCHEDULED end
      if not job.has_no_run then mend_run(id, job) end
      local scores = {
        due = dues[i], lane = places[i], lease = deadlines[i], expiry = ends[i], delayed = delays[i],
        kept = kept[job.state] and kept[job.state][i],
      }
      look_for_place(id, job, scores)
      look_for_rest(id, job, scores)
    end
  end
end
