-- list: a page of the jobs of this queue, state by state, in each in the order in which they stand. It only reads.
-- ARGV  4 first state, 5 last state, 6 task ('' for all), 7 jobs at most, 8 jobs that are looked at at most, 9 bytes of a body
--       that hold its head; and where in the first state it goes on ('' for its beginning): 10 moment, 11 id, or of
--       ready jobs the place in the lanes
-- Returns state, moment and id of the job that it stopped at ('' at the end of the queue); then for each job: id, run,
-- the head of its body, and how far its newest run is
local first, last, task = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local most, left, head, moment, place_in_state = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10], ARGV[11]
-- Bodies are read as a whole: after so many bytes the page ends.
local left_bytes = 4 * 2 ^ 20
local answer, jobs = { '', '', '' }, of_life()

-- Takes a job in if it is wanted; answers whether the page ends with it.
local function look_at(state, moment, id, task_of_job)
  left = left - 1
  local body = (task == '' or task == task_of_job) and redis.call('HGET', bodies, id)
  if body then
    local run = redis.call('HGET', runs, id)
    if not run then
      local job = jobs.fresh_run(body)
      job.state = state
      run = jobs.write_run(job)
    end
    local progress = has_story(run) and of_story().progress_of(id) or ''
    for _, part in ipairs({ id, run, string.sub(body, 1, head), progress }) do
      answer[#answer + 1] = part
    end
    most, left_bytes = most - 1, left_bytes - #body
  end
  if most > 0 and left > 0 and left_bytes > 0 then return false end
  answer[1], answer[2], answer[3] = text_of(state), moment, id
  return true
end

-- Whether an id stands before another. The language compares bytes as the locale would.
local function is_less(a, b)
  local a1, a2, a3 = struct.unpack('>I6I6I4', a)
  local b1, b2, b3 = struct.unpack('>I6I6I4', b)
  if a1 ~= b1 then return a1 < b1 end
  if a2 ~= b2 then return a2 < b2 end
  return a3 < b3
end

-- How many jobs of an order of moments stand before this place, whether or not a job still stands there.
local function before(key, moment, id)
  local low, high = redis.call('ZCOUNT', key, '-inf', '(' .. moment), redis.call('ZCOUNT', key, '-inf', moment)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = redis.call('ZRANGE', key, text_of(middle), text_of(middle))[1]
    if is_less(string.sub(member, 1, 16), id) then low = middle + 1 else high = middle end
  end
  return low
end

-- At most so many are read of an order: of one task, all that may be looked at.
local function to_read()
  return task == '' and math.min(most, left) or left
end

-- The task of a job that stands in an order of moments, where one is wanted.
local function task_in(state, member)
  if task == '' then return '' end
  local lane = state == SCHEDULED and string.sub(member, 18) or lane_of(redis.call('HGET', runs, member))
  return (task_of(lane))
end

local function list_ready(from)
  local low, high = '-', '+'
  if task ~= '' then low, high = '[' .. task .. '\0', '(' .. task .. '\3' end
  if from ~= '' then low = '(' .. from end
  local members = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', '0', text_of(to_read()))
  for _, member in ipairs(members) do
    if look_at(READY, '', string.sub(member, -16), task) then return true end
  end
  return false
end

local function list_rising(state, key, moment, id)
  local from = 0
  if id ~= '' then
    from = before(key, moment, id)
    local there = redis.call('ZRANGE', key, text_of(from), text_of(from))[1]
    if there and string.sub(there, 1, 16) == id then from = from + 1 end
  end
  local found = redis.call('ZRANGE', key, text_of(from), text_of(from + to_read() - 1), 'WITHSCORES')
  for i = 1, #found, 2 do
    local member = found[i]
    -- The last lease is none of a job.
    if member ~= LAST_LEASE then
      local job = string.sub(member, 1, 16)
      if look_at(state, found[i + 1], job, task_in(state, member)) then return true end
    end
  end
  return false
end

local function list_falling(state, key, moment, id)
  local behind = id == '' and redis.call('ZCARD', key) or before(key, moment, id)
  if behind == 0 then return false end
  local from = math.max(behind - to_read(), 0)
  local found = redis.call('ZRANGE', key, text_of(from), text_of(behind - 1), 'WITHSCORES')
  for i = #found - 1, 1, -2 do
    if look_at(state, found[i + 1], found[i], task_in(state, found[i])) then return true end
  end
  return false
end

for state = first, last do
  local is_full
  if state == READY then
    is_full = list_ready(place_in_state)
  elseif state == SCHEDULED then
    is_full = list_rising(state, scheduled, moment, place_in_state)
  elseif state == RUNNING then
    is_full = list_rising(state, leases, moment, place_in_state)
  else
    is_full = list_falling(state, ended_keys[state], moment, place_in_state)
  end
  if is_full then break end
  moment, place_in_state = '', ''
end
return answer
