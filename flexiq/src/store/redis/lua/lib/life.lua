-- life: single jobs, read and moved one by one.
-- A script makes its functions anew with each call, so what most turns do not need is made when it is first needed.
local life

local function make_life()
  local RUN = '>BBBBI4c16I6I6I6I4I4I4I4I6'
  local made = {}

  -- Reads lane, rank and due time; answers where what follows begins.
  local function read_beginning(job, text, at)
    if string.byte(text, at) < 128 then
      job.task, job.rank, job.due, at = struct.unpack('>Bc0BI6', text, at)
      job.lane = job.task
      return at
    end
    job.lane = lane_at(text, at)
    job.task = task_of(job.lane)
    job.rank, job.due, at = struct.unpack('>BI6', text, at + 1 + #job.lane)
    return at
  end

  local function read_run(text)
    local job, at = {}, 0
    job.state, job.reason, job.cancel, job.lapse, job.run, job.worker, job.ended, job.kept, job.started, job.max_losses,
      job.failures, job.deferrals, job.losses, job.expires, at = struct.unpack(RUN, text)
    job.error = string.sub(text, read_beginning(job, text, at))
    return job
  end

  local function write_run(job)
    return struct.pack(RUN, job.state, job.reason, job.cancel, job.lapse, job.run, job.worker, job.ended, job.kept,
      job.started, job.max_losses, job.failures, job.deferrals, job.losses, job.expires)
      .. beginning_of(job.lane, job.task, job.rank) .. struct.pack('>I6', job.due) .. job.error
  end

  local function new_run(state, expires)
    return {
      state = state, reason = 0, cancel = 0, lapse = 0, run = 0, failures = 0, deferrals = 0, losses = 0, max_losses = 0,
      expires = expires, started = 0, ended = 0, kept = 0, worker = NOBODY, error = '',
    }
  end

  -- The run of a job that has none yet, by its body.
  local function fresh_run(body)
    local job = new_run(READY, 0)
    read_beginning(job, body, 1)
    return job
  end

  -- A job by its id, wherever it is in its life; nil if it is not there.
  local function find_job(id)
    local text = redis.call('HGET', runs, id)
    if text then return read_run(text) end
    local body = redis.call('HGET', bodies, id)
    if not body then return nil end
    local job = fresh_run(body)
    if redis.call('ZSCORE', scheduled, scheduled_member(id, job.rank, job.lane)) then job.state = SCHEDULED end
    return job
  end

  local function change(id, job)
    changed[#changed + 1] = id
    changed[#changed + 1] = write_run(job)
  end

  -- Takes a job out of the state that it is in.
  local function leave_state(id, job)
    if job.state == SCHEDULED then
      remove(scheduled, scheduled_member(id, job.rank, job.lane))
      if job.lane ~= job.task then remove(delayed, job.lane .. '\0' .. id) end
    elseif job.state == READY then
      remove(lanes, place(job.lane, job.rank, job.due, id))
    elseif job.state == RUNNING then
      remove(leases, id)
      has_freed = true
      if job.cancel == 1 then remove(called, job.worker .. id) end
    else
      remove(ended_keys[job.state], id)
    end
    count(job.state, job.lane, -1)
  end

  -- A job is ready, or will be when it is due. What is known to expire does so unless it starts.
  local function make_pending(id, job, state)
    local was_waiting = job.state == SCHEDULED or job.state == READY
    leave_state(id, job)
    job.state = state
    if state == READY then
      job.reason = 0
      add(lanes, 0, place(job.lane, job.rank, job.due, id))
      ready_tasks[job.task] = true
    else
      add(scheduled, job.due, scheduled_member(id, job.rank, job.lane))
      if job.lane ~= job.task then add(delayed, 0, job.lane .. '\0' .. id) end
    end
    if job.expires > 0 and not was_waiting then add(expiries, job.expires, id) end
    count(state, job.lane, 1)
    change(id, job)
  end

  -- A job has ended, and is kept so long.
  local function end_job(id, job, state, reason, keep)
    if job.expires > 0 and (job.state == SCHEDULED or job.state == READY) then remove(expiries, id) end
    leave_state(id, job)
    job.state, job.reason, job.ended, job.kept = state, reason, now, math.min(now + keep, FAR)
    add(ended_keys[state], job.kept, id)
    count(state, job.lane, 1)
    change(id, job)
    ended[#ended + 1] = id
  end

  made.read_run, made.write_run, made.new_run, made.fresh_run = read_run, write_run, new_run, fresh_run
  made.find_job, made.change, made.make_pending, made.end_job = find_job, change, make_pending, end_job
  return made
end

local function of_life()
  life = life or make_life()
  return life
end
