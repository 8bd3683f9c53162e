-- enqueue: stores batches, of each all or none, and rings for what is ready.
-- ARGV  4 whether an id is named twice, 5 number of jobs, then all ids in order; then the number of batches; then of each
--       batch max_pending ('' for none) and number of groups; of each group of its jobs that have one lane, rank, due time
--       and expiry: its head and the number of jobs; and then what of each job's body follows the beginning
-- Returns 'new' for a queue that is not known yet, or 'done' and two of each batch: 'clash', and id and task of the job
-- that is there; 'full', and limit and pending jobs; 'crowded', and those of a partition, its task and its name; or
-- 'stored', and a character for each job: 'n'ew or 'd'uplicate
local repeats, jobs = ARGV[4] == '1', tonumber(ARGV[5])
local is_known, set = unpack(redis.call('HMGET', meta, 'is_known', 'max_pending'))
if not is_known then return { 'new' } end

-- The bodies that are there by the index of their job, and the tasks of jobs that are stored now.
local there, is_any_there, is_new = {}, false, {}
for from = 1, jobs, 6000 do
  local found = redis.call('HMGET', bodies, unpack(ARGV, 5 + from, 5 + math.min(from + 5999, jobs)))
  for i = 1, #found do
    if found[i] then there[from + i - 1], is_any_there = found[i], true end
  end
end

local stored, at_stored = {}, 0

-- The answer to each job of a batch; or nil, and the job that is another's.
local function look_for_those_there(first, groups)
  local answers, index, of_batch = {}, first, {}
  for _, group in ipairs(groups) do
    for _ = 1, group.jobs do
      local id = ARGV[5 + index]
      local known = is_new[id] or of_batch[id]
      if there[index] then known = of_life().fresh_run(there[index]).task end
      if known and known ~= group.task then return nil, id .. known end
      answers[#answers + 1] = known and 'd' or 'n'
      if not known then of_batch[id] = group.task end
      index = index + 1
    end
  end
  return answers
end

local pending, stored_before = nil, 0

-- How many more the queue takes, and what is pending.
local function room_of_queue(max_pending)
  if not pending then
    pending = redis.call('HLEN', bodies) - leased()
    for state = SUCCEEDED, EXPIRED do
      pending = pending - redis.call('ZCARD', ended_keys[state])
    end
  end
  local all = pending + stored_before
  return math.max(max_pending - all, 0), all
end

-- The pending jobs of partitions, with those of batches that are stored in this step.
local pending_of = {}

-- The first job, counted among the new, that a partition does not take; then its limit, what is pending, task and name.
local function look_into_partitions(groups, answers)
  local of_batch, number, at = {}, 0, 0
  for _, group in ipairs(groups) do
    local new = group.jobs
    if answers then
      new = 0
      for i = at + 1, at + group.jobs do
        if answers[i] == 'n' then new = new + 1 end
      end
    end
    local lane = group.lane
    local most = group.partition and tonumber(redis.call('HGET', limits, lane .. '\0') or group.max_pending)
    if most and new > 0 then
      pending_of[lane] = pending_of[lane] or of_partitions().pending_of(lane)
      local room = math.max(most - pending_of[lane] - (of_batch[lane] or 0), 0)
      if new > room then
        local told = { text_of(most), text_of(pending_of[lane]), group.task, group.partition }
        return number + room, table.concat(told, ' ')
      end
    end
    of_batch[lane] = (of_batch[lane] or 0) + new
    number, at = number + new, at + group.jobs
  end
  return nil
end

-- What does not take all of a batch, and what to say of it; nil if there is room.
local function find_full(max_pending, new, groups, answers, in_partitions)
  local full_at, told
  if in_partitions then full_at, told = look_into_partitions(groups, answers) end
  if max_pending and new > 0 then
    local room, before = room_of_queue(max_pending)
    if new > room and (not full_at or room <= full_at) then
      return 'full', text_of(max_pending) .. ' ' .. text_of(before)
    end
  end
  if full_at then return 'crowded', told end
  stored_before = stored_before + new
  return nil
end

-- Gathers the jobs of a group that are new.
local function store(group, first, answers, answered)
  local rank, given, due, expires = group.rank, group.given, group.due, group.expires
  local task, lane = group.task, group.lane
  due = moment_of(given % 2, due)
  local state = due > now and SCHEDULED or READY
  due = math.max(due, now)
  expires = given % 4 >= 2 and math.min(due + expires, FAR) or 0
  local beginning = group.beginning .. struct.pack('>I6', due)
  beginning = beginning .. (state == READY and '\0' or '\1' .. struct.pack('>I6', now))
  local head, scores = place(lane, rank, due, ''), list_of(added, state == READY and lanes or scheduled)
  local at, due_text, member_tail, new = #scores, text_of(due), string.char(rank) .. lane, 0
  local run
  if expires > 0 then
    run = of_life().new_run(state, expires)
    run.rank, run.task, run.lane, run.due = rank, task, lane, due
    run = of_life().write_run(run)
  end
  for i = 0, group.jobs - 1 do
    if not answers or answers[answered + i] == 'n' then
      local id = ARGV[5 + first + i]
      stored[at_stored + 1], stored[at_stored + 2] = id, beginning .. ARGV[group.at + i]
      if state == READY then
        scores[at + 1], scores[at + 2] = '0', head .. id
      else
        scores[at + 1], scores[at + 2] = due_text, id .. member_tail
        if group.partition then add(delayed, 0, lane .. '\0' .. id) end
      end
      if run then
        add(expiries, expires, id)
        changed[#changed + 1] = id
        changed[#changed + 1] = run
      end
      at, at_stored, new = at + 2, at_stored + 2, new + 1
    end
  end
  if new == 0 then return end
  if state == READY then ready_tasks[task] = true end
  count(state, lane, new)
  if pending_of[lane] then pending_of[lane] = pending_of[lane] + new end
end

local answer, at, index = { 'done' }, 7 + jobs, 1
for _ = 1, tonumber(ARGV[6 + jobs]) do
  local groups, all, in_partitions = {}, 0, false
  local max_pending, number = tonumber(set or ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  for i = 1, number do
    local rank, given, due, expires, task, of_group, tail_at = struct.unpack('>BBI6I6Bc0I4', ARGV[at])
    local lane, partition, most = task, nil, nil
    if given >= 4 then
      partition, tail_at = struct.unpack('>Bc0', ARGV[at], tail_at)
      most = string.sub(ARGV[at], tail_at)
      lane = task .. '\2' .. string.char(#partition) .. partition
      has_partitions, in_partitions = true, true
    end
    groups[i] = {
      rank = rank, given = given, due = due, expires = expires, task = task, jobs = of_group, at = at + 1,
      lane = lane, partition = partition, max_pending = most, beginning = beginning_of(lane, task, rank),
    }
    at, all = at + 1 + of_group, all + of_group
  end
  local answers, clash, new = nil, nil, all
  if repeats or is_any_there then
    answers, clash = look_for_those_there(index, groups)
    new = 0
    for _, known in ipairs(answers or {}) do
      if known == 'n' then new = new + 1 end
    end
  end
  local full, told
  if not clash then full, told = find_full(max_pending, new, groups, answers, in_partitions) end
  if clash then
    answer[#answer + 1], answer[#answer + 2] = 'clash', clash
  elseif full then
    answer[#answer + 1], answer[#answer + 2] = full, told
  else
    local first = index
    for _, group in ipairs(groups) do
      store(group, first, answers, first - index + 1)
      if answers and repeats then
        for i = 0, group.jobs - 1 do
          is_new[ARGV[5 + first + i]] = group.task
        end
      end
      first = first + group.jobs
    end
    answer[#answer + 1], answer[#answer + 2] = 'stored', answers and table.concat(answers) or string.rep('n', all)
  end
  index = index + all
end
call_in_pieces('HSET', bodies, stored)
write_moves()
ring_for_moves()
tell_keeper()
return answer
