-- What a check has found, and how it reads a job whose records may be wrong.
-- Whether it repairs; the scan's cursor and about how much it takes; and up to how many members of an order are looked
-- at together.
local wants_repair, cursor, scanned_at_once, most_counted = ARGV[5] == '1', ARGV[6], ARGV[7], tonumber(ARGV[8])
local findings, MOST_VALUES = {}, 6000
-- What was read, so that the next part of a scan can be as large as may be.
local seen, bytes_seen = 0, 0

-- Says what was found: its kind, task and job ('' for none), what was found and what should be there.
-- Answers whether it is to be repaired. What does not fit into an answer is found again by the next check.
local function found(kind, task, id, what, expected, is_repairable)
  if #findings >= MOST_VALUES then return false end
  local is_repaired = wants_repair and is_repairable ~= false
  for _, part in ipairs({ kind, task, id, what, expected, is_repaired and '1' or '0' }) do
    findings[#findings + 1] = part
  end
  return is_repaired
end

local function saw(list)
  seen = seen + #list
  for _, text in ipairs(list) do
    bytes_seen = bytes_seen + #text
  end
end

-- The next part of a hash, a set or an order; the cursor moves on.
local function scan(command, key)
  local answer = redis.call(command, key, cursor, 'COUNT', scanned_at_once)
  cursor = answer[1]
  saw(answer[2])
  return answer[2]
end

-- Every second of a list, from the first or the second on.
local function every_second(list, from)
  local taken = {}
  for i = from, #list, 2 do
    taken[#taken + 1] = list[i]
  end
  return taken
end

-- Reads many scores of an order, in pieces that unpack can carry.
local function read_scores(key, members)
  local scores = {}
  for from = 1, #members, 6000 do
    local piece = redis.call('ZMSCORE', key, unpack(members, from, math.min(from + 5999, #members)))
    for i = 1, #piece do
      scores[from + i - 1] = tonumber(piece[i] or nil)
    end
  end
  return scores
end

-- A body as the run of a job that has had none; nil if it cannot be read.
local function read_body(body)
  local is_read, job = pcall(of_life().fresh_run, body)
  return is_read and job.task ~= '' and job or nil
end

-- A run; nil if it cannot be read.
local function read_text(text)
  local is_read, job = pcall(of_life().read_run, text)
  return is_read and job.state <= EXPIRED and job or nil
end

-- The jobs of these ids by their records; false for one that is not there or cannot be read. A job without a run is
-- scheduled if it stands there, and else ready.
local function read_jobs(ids)
  local texts, jobs = read_fields(runs, ids), {}
  for i, id in ipairs(ids) do
    local job = texts[i] and read_text(texts[i])
    if not texts[i] then
      local body = redis.call('HGET', bodies, id)
      bytes_seen = bytes_seen + (body and #body or 0)
      job = body and read_body(body)
      if job then
        job.has_no_run = true
        if redis.call('ZSCORE', scheduled, scheduled_member(id, job.rank, job.lane)) then job.state = SCHEDULED end
      end
    elseif redis.call('HEXISTS', bodies, id) == 0 then
      job = nil
    end
    jobs[i] = job or false
  end
  return jobs
end

-- The partitions that are counted anew and set right when this step ends.
local miscounted = {}
local function recount_later(lane)
  local _, is_partition = task_of(lane)
  if is_partition then miscounted[lane] = true end
end
