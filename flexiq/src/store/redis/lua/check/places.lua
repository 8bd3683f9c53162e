-- Orders and hashes, by their members: whether the job of each is there, and stands there by its state.
local function is_in_order(state)
  return function(_, job) return job.state == state end
end

local function last_id(member)
  return string.sub(member, -16)
end

local function whole(member)
  return member
end

-- Of each: how it is scanned, which job a member is of, whether it is rightly there, what it is if not, and how it is
-- removed.
local function kinds_of_places()
  local kinds = {
    lanes = {
      key = lanes, id = last_id, what = 'it stands in a lane, and is not ready there',
      is_right = function(member, job, id)
        return job.state == READY and place(job.lane, job.rank, job.due, id) == member
      end,
    },
    scheduled = {
      key = scheduled, id = function(member) return string.sub(member, 1, 16) end,
      what = 'it stands among the scheduled, and is not',
      is_right = function(member, job, id)
        return job.state == SCHEDULED and scheduled_member(id, job.rank, job.lane) == member
      end,
    },
    leases = {
      key = leases, id = whole, what = 'a lease is held, and it is not running', is_right = is_in_order(RUNNING),
    },
    expiries = {
      key = expiries, id = whole, what = 'it stands among those that can expire, and cannot',
      is_right = function(_, job) return job.state <= READY and job.expires > 0 end,
    },
    delayed = {
      key = delayed, id = last_id, what = 'its partition takes it for scheduled, and it is not',
      is_right = function(member, job, id) return job.state == SCHEDULED and job.lane .. '\0' .. id == member end,
    },
    called = {
      key = called, scan = 'SSCAN', remove = 'SREM', id = last_id,
      what = 'a worker is to be told to stop it, and does not run it',
      is_right = function(member, job, id)
        return job.state == RUNNING and job.cancel == 1 and job.worker .. id == member
      end,
    },
    awaited = {
      key = awaited, scan = 'HSCAN', remove = 'HDEL', id = whole, what = 'its end is awaited, and has come',
      is_right = function(_, job) return job.state < SUCCEEDED end,
    },
    runs = {
      key = runs, scan = 'HSCAN', remove = 'HDEL', id = whole, what = 'runs are kept of a job that is not there',
      is_right = function() return true end,
    },
    values = {
      key = values, scan = 'HSCAN', remove = 'HDEL', id = whole, what = 'a value is kept of a job that is not there',
      is_right = function() return true end,
    },
    stories = {
      key = stories, scan = 'HSCAN', remove = 'HDEL', what = 'a story is kept of a job that is not there',
      id = function(field) return string.sub(field, 1, 16) end,
      is_right = function() return true end,
    },
  }
  for state = SUCCEEDED, EXPIRED do
    kinds[STATES[state]] = {
      key = ended_keys[state], id = whole, what = 'it stands among the ' .. STATES[state] .. ', and is not',
      -- Of one whose run is lost this order alone knows.
      is_right = function(_, job) return job.state == state or job.has_no_run end,
    }
  end
  return kinds
end

-- Of what has no other meaning it is enough that there is a body.
local function find_bodies(ids)
  local jobs = {}
  for i, id in ipairs(ids) do
    jobs[i] = redis.call('HEXISTS', bodies, id) == 1 and { state = READY, task = '', lane = '' }
  end
  return jobs
end

-- Partitions whose jobs are ready and that nobody counts.
local function look_for_records(members, jobs)
  local names, is_named = {}, {}
  for i, member in ipairs(members) do
    local job = jobs[i]
    if job and job.lane ~= job.task and not is_named[job.lane] then
      is_named[job.lane] = true
      names[#names + 1] = job.lane
    end
  end
  for i, record in ipairs(read_fields(partitions, names)) do
    local task = task_of(names[i])
    local what = 'a partition has jobs that are ready, and nothing is known of it'
    if not record and found('turn', task, '', what, 'it stands among the turns') then recount_later(names[i]) end
  end
end

local function look_at_places(name)
  local kind = kinds_of_places()[name]
  local members = scan(kind.scan or 'ZSCAN', kind.key)
  if kind.scan ~= 'SSCAN' then members = every_second(members, 1) end
  local kept, ids = {}, {}
  for _, member in ipairs(members) do
    if member ~= LAST_LEASE then
      kept[#kept + 1] = member
      ids[#ids + 1] = kind.id(member)
    end
  end
  local needs_no_run = name == 'runs' or name == 'values' or name == 'stories'
  local jobs = needs_no_run and find_bodies(ids) or read_jobs(ids)
  local gone = {}
  for i, member in ipairs(kept) do
    local job, id = jobs[i], ids[i]
    if not job or not kind.is_right(member, job, id) then
      local task = job and job.task or ''
      if found('orphan', task, #id == 16 and id or '', kind.what, 'only what is so stands there') then
        gone[#gone + 1] = member
        if name == 'awaited' then ended[#ended + 1] = id end
        if name == 'lanes' then recount_later(string.sub(member, 1, -25)) end
        if name == 'delayed' then recount_later(string.sub(member, 1, -18)) end
        if name == 'leases' then has_freed = true end
      end
    end
  end
  -- Whoever waits for an end is told that it has come.
  if name == 'awaited' then tell_ends() else call_in_pieces(kind.remove or 'ZREM', kind.key, gone) end
  if name == 'lanes' then look_for_records(kept, jobs) end
end
