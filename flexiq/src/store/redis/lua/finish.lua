-- finish: frees the leases of runs that have ended, and moves their jobs by what became of them. Only the worker that
-- holds the newest run may do so. The first part of a turn.
local FINISH = '>c16I4BBBI6I6'
local new_values = {}

-- A job that was cancelled while it ran ends as cancelled, unless the run succeeded. Such an end moves no counter.
local function finish_one(id, job, head, body)
  local _, _, kind, reason, is_moment, due, keep = struct.unpack(FINISH, head)
  if (kind == 1 or kind == 2) and body ~= '' then job.error = body end
  if kind == 0 then
    end_job(id, job, SUCCEEDED, 0, keep)
  elseif job.cancel > 0 or kind == 4 then
    end_job(id, job, CANCELLED, 0, DAY)
  elseif kind == 1 then
    -- A failed run has been started in earnest: its job does not expire any more. A deferral leaves the expiry.
    if reason == 2 then
      job.deferrals = job.deferrals + 1
    else
      job.failures, job.expires = job.failures + 1, 0
    end
    due = moment_of(is_moment, due)
    job.due = math.max(due, now)
    job.reason = reason
    make_pending(id, job, due > now and SCHEDULED or READY)
  elseif kind == 2 then
    if reason == 2 then job.deferrals = job.deferrals + 1 else job.failures = job.failures + 1 end
    end_job(id, job, DEAD, reason, KEEP_DEAD)
  else
    make_pending(id, job, READY)
  end
end

-- Carries out the finishes of a turn; answers a character for each, 'd'one or 'l'ost.
local function finish(worker, finishes)
  local answers = {}
  local ids, seen = {}, {}
  for i = 1, finishes do
    ids[i] = string.sub(ARGV[6 + 2 * i], 1, 16)
  end
  local texts = read_fields(runs, ids)
  for i, id in ipairs(ids) do
    local text, head, body = texts[i], ARGV[6 + 2 * i], ARGV[7 + 2 * i]
    if text and not seen[id] and is_held(text, worker, string.sub(head, 17, 20)) then
      seen[id] = true
      answers[i] = 'd'
      local is_success = string.byte(head, 21) == 0
      if is_success and body ~= '' then
        new_values[#new_values + 1] = id
        new_values[#new_values + 1] = body
      end
      if is_success and string.byte(text, 3) ~= 1 then
        succeed(id, text, (struct.unpack('>I6', head, 30)))
      else
        finish_one(id, read_run(text), head, body)
      end
    else
      answers[i] = 'l'
    end
  end
  write_moves()
  call_in_pieces('HSET', values, new_values)
  prune(finishes * 2)
  return table.concat(answers)
end
