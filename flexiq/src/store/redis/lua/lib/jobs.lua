-- A job: its body, which never changes, and from its first start on (or where it can expire) its run.
local BODY = '>I6I6I6BBc0'
local RUN = '>BBBBI4I4I4I4I4I6I6I6I6I6c16BBc0'
local NOBODY = string.rep('\0', 16)

-- The place of a ready job in the one order of all lanes: task, then priority and age, then id.
local function place(task, rank, due, id)
  return task .. '\0' .. struct.pack('>I7', rank * 2 ^ 44 + due) .. id
end

-- A scheduled job says its task and rank, so that promoting it reads no body.
local function scheduled_member(id, rank, task)
  return id .. string.char(rank) .. task
end

local function read_run(text)
  local job, at = {}, 0
  job.state, job.reason, job.cancel, job.lapse, job.run, job.failures, job.deferrals, job.losses, job.max_losses,
    job.due, job.expires, job.started, job.ended, job.kept, job.worker, job.rank, job.task, at = struct.unpack(RUN, text)
  job.error = string.sub(text, at)
  return job
end

local function write_run(job)
  return struct.pack(RUN, job.state, job.reason, job.cancel, job.lapse, job.run, job.failures, job.deferrals, job.losses,
    job.max_losses, job.due, job.expires, job.started, job.ended, job.kept, job.worker, job.rank, #job.task, job.task)
    .. job.error
end

local function new_run(state, rank, task, due, expires)
  return {
    state = state, reason = 0, cancel = 0, lapse = 0, run = 0, failures = 0, deferrals = 0, losses = 0, max_losses = 0,
    due = due, expires = expires, started = 0, ended = 0, kept = 0, worker = NOBODY, rank = rank, task = task, error = '',
  }
end

-- The two texts that most steps make, cut together of what is there instead of read and written again.

-- The run of a job that is leased for the first time: `head` and `tail` are the same for all of its task and moment.
local function first_run(body, head, tail)
  return head .. string.sub(body, 7, 18) .. tail .. string.sub(body, 19, 20 + string.byte(body, 20))
end

-- Whether a run is under way, and this worker's, with its number in four bytes.
local function is_held(text, worker, run)
  return string.byte(text, 1) == 2 and string.sub(text, 55, 70) == worker and string.sub(text, 5, 8) == run
end

-- The run of a job that has succeeded.
local function succeeded_run(text, ended_and_kept)
  return '\3\0' .. string.sub(text, 3, 42) .. ended_and_kept .. string.sub(text, 55)
end

local function task_of(text)
  return string.sub(text, 73, 72 + string.byte(text, 72))
end

-- The run of a job that has none yet, by its body.
local function fresh_run(body)
  local _, due, expires, rank, task = struct.unpack(BODY, body)
  return new_run(READY, rank, task, due, expires)
end

-- A job by its id, wherever it is in its life; nil if it is not there.
local function find_job(id)
  local text = redis.call('HGET', runs, id)
  if text then
    return read_run(text)
  end
  local body = redis.call('HGET', bodies, id)
  if not body then
    return nil
  end
  local job = fresh_run(body)
  if redis.call('ZSCORE', scheduled, scheduled_member(id, job.rank, job.task)) then
    job.state = SCHEDULED
  end
  return job
end
