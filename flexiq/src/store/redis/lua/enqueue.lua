-- enqueue: stores batches, of each all or none, and rings for what is ready.
-- ARGV  4 whether an id is named twice, 5 number of jobs, then all ids in order; then the number of batches; then of each
--       batch max_pending ('' for none), the producer and handle that stand in line ('' for none) and number of groups; of
--       each group of its jobs that have one lane, rank, due time and expiry: its head and the number of jobs; and then what of
--       each job's body follows the beginning; then of each job with a unique key its index, the key, what frees it, what it does
--       to the job that has it, and how long it is held in any case; and last, how many of these there are
-- Returns 'new' for a queue that is not known yet, or 'done' and two of each batch: 'clash', and id and task of the job
-- that is there; 'full', and limit and pending jobs; 'crowded', and those of a partition, its task and its name; 'never',
-- and the jobs that would not even fit alone and their limit; 'misplaced', and the job of another partition; or 'stored',
-- and a character for each job: 'n'ew, 'd'uplicate, 'k'ey taken, or arguments 'r'eplaced; and then of each of the last two
-- the id of the job that has the key
local repeats, jobs = ARGV[4] == '1', tonumber(ARGV[5])
local is_known, set, arrivals = unpack(redis.call('HMGET', meta, 'is_known', 'max_pending', 'arrivals'))
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

-- The answer to each job of a batch, and what is known of its calls with unique keys; or nil, what is wrong, and the job that is
-- another's.
local function look_for_those_there(first, groups)
  local answers, index, of_batch, of_calls = {}, first, {}, calls and calls.begin()
  for _, group in ipairs(groups) do
    for n = 0, group.jobs - 1 do
      local id = ARGV[5 + index]
      local known = is_new[id] or of_batch[id]
      if there[index] then known = of_life().fresh_run(there[index]).task end
      if known and known ~= group.task then return nil, 'clash', id .. known end
      local found, owner
      if calls and not known then
        found, owner = calls.look(index, id, group, ARGV[group.at + n], of_calls)
        if found == 'misplaced' then return nil, found, owner end
      end
      answers[#answers + 1] = found or known and 'd' or 'n'
      if not known and not found then of_batch[id] = group.task end
      index = index + 1
    end
  end
  return answers, of_calls
end

local pending, stored_before = nil, 0

-- What is left of room behind those who stand in line before a producer.
local function room_behind(line, id, room)
  if arrivals and room > 0 then room = room - of_room().kept(line, id, room) end
  return math.max(room, 0)
end

-- How many more the queue takes, and what is pending.
local function room_of_queue(max_pending, id)
  pending = pending or pending_jobs()
  local all = pending + stored_before
  return room_behind('', id, max_pending - all), all
end

-- The pending jobs of partitions, with those of batches that are stored in this step.
local pending_of = {}

-- The first job, counted among the new, that a partition does not take; then its limit, what is pending, task and name; then
-- its group and the limit.
local function look_into_partitions(groups, answers, id)
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
      local room = room_behind(lane, id, most - pending_of[lane] - (of_batch[lane] or 0))
      if new > room then
        local told = { text_of(most), text_of(pending_of[lane]), group.task, group.partition }
        return number + room, table.concat(told, ' '), group, most
      end
    end
    of_batch[lane] = (of_batch[lane] or 0) + new
    number, at = number + new, at + group.jobs
  end
  return nil
end

-- The new jobs of a batch in one lane.
local function new_in(lane, groups, answers)
  local new, at = 0, 0
  for _, group in ipairs(groups) do
    for i = at + 1, at + group.jobs do
      if group.lane == lane and (not answers or answers[i] == 'n') then new = new + 1 end
    end
    at = at + group.jobs
  end
  return new
end

-- Lets a producer that was refused stand in line, unless its jobs would never fit.
local function refuse(word, told, producer, line, jobs, declared, most)
  if producer == '' then return word, told end
  if jobs > most then return 'never', text_of(jobs) .. ' ' .. text_of(most) end
  declared = math.min(tonumber(declared) or 0, FAR)
  of_room().stand(line, string.sub(producer, 1, 16), string.sub(producer, 17), jobs, declared)
  arrivals = true
  return word, told
end

-- What does not take all of a batch, and what to say of it; nil if there is room.
local function find_full(declared, new, groups, answers, in_partitions, producer)
  local id, max_pending = string.sub(producer, 1, 16), tonumber(set or declared)
  local full_at, told, group, most
  if in_partitions then full_at, told, group, most = look_into_partitions(groups, answers, id) end
  if max_pending and new > 0 then
    local room, before = room_of_queue(max_pending, id)
    if new > room and (not full_at or room <= full_at) then
      told = text_of(max_pending) .. ' ' .. text_of(before)
      return refuse('full', told, producer, '', new, declared, max_pending)
    end
  end
  if full_at then
    local lane = group.lane
    return refuse('crowded', told, producer, lane, new_in(lane, groups, answers), group.max_pending, most)
  end
  stored_before = stored_before + new
  if arrivals and producer ~= '' then of_room().leave(id) end
  return nil
end

-- Gathers the jobs of a group that are new.
local function store(group, first, answers, answered)
  local rank, due, expires = group.rank, group.due_at, group.expires_at
  local task, lane = group.task, group.lane
  local state = due > now and SCHEDULED or READY
  due = math.max(due, now)
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
      if calls then calls.store(first + i, id, lane) end
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
  local max_pending, producer, number = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  at = at + 3
  for i = 1, number do
    local rank, given, due, expires, task, of_group, tail_at = struct.unpack('>BBI6I6Bc0I4', ARGV[at])
    local lane, partition, most = task, nil, nil
    if given >= 4 then
      partition, tail_at = struct.unpack('>Bc0', ARGV[at], tail_at)
      most = string.sub(ARGV[at], tail_at)
      lane = task .. '\2' .. string.char(#partition) .. partition
      has_partitions, in_partitions = true, true
    end
    local due_at = moment_of(given % 2, due)
    groups[i] = {
      rank = rank, due_at = due_at, expires_at = given % 4 >= 2 and math.min(math.max(due_at, now) + expires, FAR) or 0,
      task = task, jobs = of_group, at = at + 1, lane = lane, partition = partition, max_pending = most,
      beginning = beginning_of(lane, task, rank),
    }
    at, all = at + 1 + of_group, all + of_group
  end
  local answers, found, of_whom, new = nil, nil, nil, all
  if repeats or is_any_there or calls then
    answers, found, of_whom = look_for_those_there(index, groups)
    new = 0
    for _, known in ipairs(answers or {}) do
      if known == 'n' then new = new + 1 end
    end
  end
  local full, told
  if not of_whom then full, told = find_full(max_pending, new, groups, answers, in_partitions, producer) end
  if of_whom then
    answer[#answer + 1], answer[#answer + 2] = found, of_whom
  elseif full then
    answer[#answer + 1], answer[#answer + 2] = full, told
  else
    local first = index
    for _, group in ipairs(groups) do
      store(group, first, answers, first - index + 1)
      if answers and repeats then
        for i = 0, group.jobs - 1 do
          if answers[first - index + 1 + i] == 'n' then is_new[ARGV[5 + first + i]] = group.task end
        end
      end
      first = first + group.jobs
    end
    local fates = answers and table.concat(answers) or string.rep('n', all)
    answer[#answer + 1], answer[#answer + 2] = 'stored', calls and fates .. calls.keep(found) or fates
  end
  index = index + all
end
call_in_pieces('HSET', bodies, stored)
write_moves()
if calls then calls.write() end
ring_for_moves()
if arrivals then of_room().tell() end
tell_keeper()
return answer
