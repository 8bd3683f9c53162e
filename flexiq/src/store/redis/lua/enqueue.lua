-- enqueue: stores batches, of each all or none, and rings for what is ready.
-- ARGV  4 whether an id is named twice, 5 number of jobs, then all ids in order; then the number of batches; then of each
--       batch max_pending ('' for none) and number of groups; of each group of its jobs that have one task, rank, due time
--       and expiry: its head and the number of jobs; and then what of each job's body follows the beginning
-- Returns 'new' for a queue that is not known yet, or 'done' and two of each batch: 'clash', and id and task of the job
-- that is there; 'full', and limit and pending jobs; or 'stored', and a character for each job: 'n'ew or 'd'uplicate
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

local pending

-- Whether so many more are too many; then the limit and what is pending.
local function is_full(max_pending, new)
  if not max_pending or new == 0 then return nil end
  if not pending then
    pending = redis.call('HLEN', bodies) - leased()
    for state = SUCCEEDED, EXPIRED do
      pending = pending - redis.call('ZCARD', ended_keys[state])
    end
  end
  if pending + new > max_pending then return text_of(max_pending) .. ' ' .. text_of(pending) end
  pending = pending + new
  return nil
end

-- Gathers the jobs of a group that are new.
local function store(group, first, answers, answered)
  local rank, given, due, expires = group.rank, group.given, group.due, group.expires
  local task = group.task
  due = moment_of(given % 2, due)
  local state = due > now and SCHEDULED or READY
  due = math.max(due, now)
  expires = given >= 2 and math.min(due + expires, FAR) or 0
  local beginning = group.beginning .. struct.pack('>I6', due)
  beginning = beginning .. (state == READY and '\0' or '\1' .. struct.pack('>I6', now))
  local lane, scores, scored = place(task, rank, due, ''), list_of(added, state == READY and lanes or scheduled), 0
  local at, due_text, member_tail, new = #scores, text_of(due), string.char(rank) .. task, 0
  local run = expires > 0 and of_life().write_run(of_life().new_run(state, rank, task, due, expires))
  for i = 0, group.jobs - 1 do
    if not answers or answers[answered + i] == 'n' then
      local id = ARGV[5 + first + i]
      stored[at_stored + 1], stored[at_stored + 2] = id, beginning .. ARGV[group.at + i]
      if state == READY then
        scores[at + 1], scores[at + 2] = '0', lane .. id
      else
        scores[at + 1], scores[at + 2] = due_text, id .. member_tail
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
  count(state, task, new)
end

local answer, at, index = { 'done' }, 7 + jobs, 1
for _ = 1, tonumber(ARGV[6 + jobs]) do
  local groups, all = {}, 0
  local max_pending, number = tonumber(set or ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  for i = 1, number do
    local rank, given, due, expires, task, of_group = struct.unpack('>BBI6I6Bc0I4', ARGV[at])
    groups[i] = {
      rank = rank, given = given, due = due, expires = expires, task = task, jobs = of_group, at = at + 1,
      beginning = string.char(#task) .. task .. string.char(rank),
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
  local full = not clash and is_full(max_pending, new)
  if clash then
    answer[#answer + 1], answer[#answer + 2] = 'clash', clash
  elseif full then
    answer[#answer + 1], answer[#answer + 2] = 'full', full
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
