-- turn: a worker's finishes and its next claim, in one step that may be sent again.
-- ARGV  4 worker, 5 number, 6 whether silent workers were settled, 7 number of finishes, then two of each finish: lease
--       and transition, and its value or error; then, if it claims, lease, number of slots, free slots of each, and four
--       of each room: task, slot, most, max_losses
-- Returns 'settle' if a silent worker's declarations must lapse first, or 'done', a character for each finish, whether
-- there is more, and two of each claimed job: its lease and counters, and its body.
local FINISH = '>c16I4BBBI6I6'
local worker, number = ARGV[4], tonumber(ARGV[5])
local finishes = tonumber(ARGV[7])
local claim_at = 8 + 2 * finishes
local has_claim = #ARGV >= claim_at
local MOST_JOBS, MOST_BYTES = 1000, 4194304

local function claimed_head(id, job)
  return struct.pack('>c16I4I4I4I4I6I6', id, job.run, job.failures, job.deferrals, job.losses, job.due, job.started)
end

-- The answer of the turn that is kept; an older number learns nothing, for its answer was taken long ago.
local function answer_again(kept)
  local kept_number, more, answered, at = struct.unpack('>I6BI4', kept)
  if number < kept_number then return { 'done', string.rep('l', finishes), 0 } end
  local answer = { 'done', string.sub(kept, at, at + answered - 1), more }
  for lease = at + answered, #kept, 20 do
    local id, run = struct.unpack('>c16I4', kept, lease)
    local text = redis.call('HGET', runs, id)
    local job = text and read_run(text)
    -- A lease that was lost meanwhile is not handed out again.
    if job and job.state == RUNNING and job.worker == worker and job.run == run then
      answer[#answer + 1] = claimed_head(id, job)
      answer[#answer + 1] = redis.call('HGET', bodies, id)
    end
  end
  return answer
end

local kept = redis.call('HGET', turns, worker)
if kept and number <= struct.unpack('>I6', kept) then return answer_again(kept) end
local silent_at = redis.call('HGET', meta, 'silent_at')
if has_claim and ARGV[6] == '0' and silent_at and tonumber(silent_at) <= now then return { 'settle' } end

-- finish ------------------------------------------------------------------------------------------------------------

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

local answers = {}
if finishes > 0 then
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
end
answers = table.concat(answers)

-- claim -------------------------------------------------------------------------------------------------------------

local claimed, answer, more = {}, {}, 0

-- Whether the byte string `a` comes before `b`: the language compares by the locale.
local function is_before(a, b)
  for i = 1, #a do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return false
end

-- The next place of a lane, read in chunks; false if there is none.
local function advance(lane)
  lane.at = lane.at + 1
  if lane.at > #lane.places then
    if lane.read >= lane.ready then return false end
    local low, high = '[' .. lane.task.name .. '\0', '(' .. lane.task.name .. '\1'
    lane.places = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', lane.read, lane.chunk)
    lane.read = lane.read + #lane.places
    lane.chunk = lane.chunk * 4
    lane.at = 1
    if #lane.places == 0 then return false end
  end
  lane.order = struct.unpack('>I7', lane.places[lane.at], #lane.task.name + 2)
  return true
end

local function goes_first(a, b)
  if a.order ~= b.order then return a.order < b.order end
  return is_before(string.sub(a.places[a.at], -16), string.sub(b.places[b.at], -16))
end

-- A heap of lanes: the one whose head is best stands first.
local function push(heap, lane)
  local at = #heap + 1
  heap[at] = lane
  while at > 1 do
    local above = math.floor(at / 2)
    if not goes_first(heap[at], heap[above]) then return end
    heap[at], heap[above] = heap[above], heap[at]
    at = above
  end
end

local function sift_down(heap)
  local at = 1
  while true do
    local least = at
    for below = 2 * at, 2 * at + 1 do
      if heap[below] and goes_first(heap[below], heap[least]) then least = below end
    end
    if least == at then return end
    heap[at], heap[least] = heap[least], heap[at]
    at = least
  end
end

local function drop_first(heap)
  heap[1] = heap[#heap]
  heap[#heap] = nil
  if #heap > 1 then sift_down(heap) end
end

-- A gate as this claim goes through it. It is asked for one more, so that it is known whether it is open afterwards.
local function passage(gate, wanted)
  local most, opens = admit(gate, wanted + 1)
  return { gate = gate, room = most, opens = opens, taken = 0 }
end

local function pass(through, jobs)
  if through.gate then
    through.room = through.room - jobs
    through.taken = through.taken + jobs
  end
end

local function charge_passage(through)
  if through.taken == 0 then return end
  charge(through.gate, through.taken)
  if through.room == 0 then
    through.room, through.opens = admit(through.gate, 1)
  end
end

-- What is wanted: free slots, and rooms by task.
local function read_claim()
  local wanted = { lease = tonumber(ARGV[claim_at]), slots = {}, rooms = {}, all = 0 }
  local slots = tonumber(ARGV[claim_at + 1])
  for i = 1, slots do
    wanted.slots[i] = tonumber(ARGV[claim_at + 1 + i])
    wanted.all = wanted.all + wanted.slots[i]
  end
  for i = claim_at + 2 + slots, #ARGV, 4 do
    wanted.rooms[ARGV[i]] = { slot = tonumber(ARGV[i + 1]) + 1, most = tonumber(ARGV[i + 2]), max_losses = tonumber(ARGV[i + 3]) }
  end
  return wanted
end

-- The tasks of which something is ready, each behind its gate.
local function read_tasks(wanted, of_queue)
  local all, names, tasks = redis.call('HGETALL', waiting), {}, {}
  for i = 1, #all, 2 do
    names[#names + 1] = all[i]
  end
  if #names == 0 then return tasks end
  local gates = of_queue.room > 0 and read_fields(limits, names) or {}
  for i, name in ipairs(names) do
    local room = wanted.rooms[name]
    local most = room and math.min(room.most, wanted.slots[room.slot] or 0, MOST_JOBS) or 0
    tasks[i] = { name = name, ready = tonumber(all[2 * i]), room = room, through = passage(read_gate(name, gates[i]), most) }
  end
  return tasks
end

local function choice(task, place)
  return { task = task, place = place, id = string.sub(place, -16) }
end

-- The first so many of the one lane that is open: no order has to be found.
local function choose_of_one(of_queue, task, jobs)
  local low, high = '[' .. task.name .. '\0', '(' .. task.name .. '\1'
  local chosen = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', 0, math.min(jobs, MOST_JOBS))
  for i, place in ipairs(chosen) do
    chosen[i] = choice(task, place)
  end
  pass(task.through, #chosen)
  pass(of_queue, #chosen)
  return chosen, jobs > MOST_JOBS
end

-- Chooses the best places of the lanes that are open; answers them and whether a bound ended it.
local function choose(wanted, of_queue, tasks)
  local open, startable = {}, 0
  local function free(task)
    local room = task.room
    return room and math.min(room.most, wanted.slots[room.slot] or 0, task.through.room, of_queue.room) or 0
  end
  for _, task in ipairs(tasks) do
    if free(task) > 0 then
      open[#open + 1] = task
      startable = startable + math.min(task.ready, task.through.room)
    end
  end
  if #open == 0 then return {}, false end
  -- While others wait, a burst is shared with them: what is left wakes the next.
  local others = 0
  for _, waiter in ipairs(all_waiters()) do
    for name in pairs(wanted.rooms) do
      if wants(waiter, name) then
        others = others + 1
        break
      end
    end
  end
  local most = math.ceil(math.min(startable, of_queue.room) / (others + 1))
  if #open == 1 then return choose_of_one(of_queue, open[1], math.min(free(open[1]), most)) end
  local share = math.ceil(math.min(wanted.all, most, MOST_JOBS) / #open)
  local heap, chosen = {}, {}
  for _, task in ipairs(open) do
    local chunk = math.max(math.min(share + 1, free(task), most), 1)
    local lane = { task = task, ready = task.ready, read = 0, chunk = chunk, places = {}, at = 0 }
    if advance(lane) then push(heap, lane) end
  end
  while #heap > 0 and most > 0 do
    local lane = heap[1]
    local task = lane.task
    if free(task) == 0 then
      drop_first(heap)
    else
      if #chosen == MOST_JOBS then return chosen, true end
      chosen[#chosen + 1] = choice(task, lane.places[lane.at])
      most = most - 1
      pass(task.through, 1)
      pass(of_queue, 1)
      task.room.most = task.room.most - 1
      wanted.slots[task.room.slot] = wanted.slots[task.room.slot] - 1
      if free(task) > 0 and advance(lane) then sift_down(heap) else drop_first(heap) end
    end
  end
  return chosen, false
end

-- Reads the bodies of what was chosen, and gives back what goes over the bytes that an answer may have.
local function read_bodies(of_queue, chosen)
  local texts, bytes, chunk = {}, 0, math.min(#chosen, 128)
  if #chosen > 0 and redis.call('HSTRLEN', bodies, chosen[1].id) > 8192 then chunk = 4 end
  while #texts < #chosen and bytes < MOST_BYTES do
    local ids = {}
    for i = #texts + 1, math.min(#texts + chunk, #chosen) do
      ids[#ids + 1] = chosen[i].id
    end
    for _, body in ipairs(redis.call('HMGET', bodies, unpack(ids))) do
      if bytes < MOST_BYTES then
        texts[#texts + 1] = body
        bytes = bytes + #body
      end
    end
  end
  local is_cut = #texts < #chosen
  for i = #chosen, #texts + 1, -1 do
    pass(chosen[i].task.through, -1)
    pass(of_queue, -1)
    chosen[i] = nil
  end
  return texts, is_cut
end

-- Leases what was chosen.
local function lease(wanted, chosen, texts)
  local ids = {}
  for i, one in ipairs(chosen) do
    ids[i] = one.id
  end
  local had = read_fields(runs, ids)
  local deadline, now_text = math.min(now + wanted.lease, FAR), struct.pack('>I6', now)
  local tail = now_text .. string.rep('\0', 12) .. worker
  local first = struct.pack('>I4I4I4I4', 1, 0, 0, 0)
  local heads, taken = {}, {}
  for i, one in ipairs(chosen) do
    local id, task = one.id, one.task
    taken[task] = (taken[task] or 0) + 1
    if had[i] then
      local job = read_run(had[i])
      if job.expires > 0 then remove(expiries, id) end
      job.state, job.reason, job.cancel, job.lapse = RUNNING, 0, 0, 0
      job.run, job.worker, job.started, job.max_losses = job.run + 1, worker, now, task.room.max_losses
      change(id, job)
      claimed[i] = struct.pack('>c16I4', id, job.run)
      answer[#answer + 1] = claimed_head(id, job)
    else
      heads[task] = heads[task] or '\2\0\0\0' .. first .. struct.pack('>I4', task.room.max_losses)
      change(id, first_run(texts[i], heads[task], tail))
      claimed[i] = id .. '\0\0\0\1'
      answer[#answer + 1] = id .. first .. string.sub(texts[i], 7, 12) .. now_text
    end
    remove(lanes, one.place)
    add(leases, deadline, id)
    answer[#answer + 1] = texts[i]
  end
  for task, jobs in pairs(taken) do
    task.ready = task.ready - jobs
    count(READY, task.name, -jobs)
    count(RUNNING, task.name, jobs)
  end
  write_moves()
end

-- Sets the bells to the truth: what is startable of what this worker asked for is rung, and what it took and cannot use,
-- and what has opened; what is not startable is silent.
local function tell_truth(wanted, of_queue, tasks)
  local was = redis.call('HGETALL', bells)
  local before, sights = {}, {}
  for i = 1, #was, 2 do
    before[was[i]] = was[i + 1]
  end
  redis.call('DEL', openings)
  for _, task in ipairs(tasks) do
    if task.ready > 0 then
      local shut = of_queue.room == 0 and of_queue or task.through.room == 0 and task.through or nil
      sights[task.name] = shut and 'shut' or 'startable'
      if shut and shut.opens then redis.call('ZADD', openings, shut.opens, task.name) end
    end
  end
  for name, bell in pairs(before) do
    if not sights[name] then redis.call('HDEL', bells, name) end
    if sights[name] == 'shut' and bell ~= 'shut' then redis.call('HSET', bells, name, 'shut') end
  end
  local taken = redis.call('HGET', popped, worker)
  local unused = {}
  if taken then
    redis.call('HDEL', popped, worker)
    for name in string.gmatch(taken, '%Z+') do
      unused[name] = not wanted.rooms[name]
    end
  end
  for name, sight in pairs(sights) do
    if sight == 'shut' then
      if not before[name] then redis.call('HSET', bells, name, 'shut') end
    elseif wanted.rooms[name] or unused[name] or before[name] == 'shut' then
      ring(name)
    end
  end
end

-- The best of what may start is leased to the worker; all gates are asked first, then all are charged.
local function claim()
  local wanted = read_claim()
  local has_expired, has_more = keep_house()
  -- What has expired must not start: the next claim goes on from here.
  if has_expired then
    more = 1
    ring_for_moves()
    return
  end
  local of_queue = passage(gate_of(''), math.min(wanted.all, MOST_JOBS))
  local tasks = read_tasks(wanted, of_queue)
  local chosen, is_bounded = choose(wanted, of_queue, tasks)
  local texts, is_cut = read_bodies(of_queue, chosen)
  if has_more or is_bounded or is_cut then more = 1 end
  if #chosen > 0 then
    lease(wanted, chosen, texts)
    charge_passage(of_queue)
    for _, task in ipairs(tasks) do
      charge_passage(task.through)
    end
  end
  tell_truth(wanted, of_queue, tasks)
  -- What became ready of tasks that this worker did not ask for is rung for, too.
  for name in pairs(ready_tasks) do
    if not wanted.rooms[name] and redis.call('HGET', bells, name) ~= 'rung' then set_right(name) end
  end
end

if has_claim then
  claim()
  redis.call('HDEL', meta, 'alarm_taken')
else
  ring_for_moves()
end
tell_ends()
tell_keeper()

-- A turn that did nothing may as well be done again.
if finishes > 0 or #claimed > 0 then
  local kept_now = struct.pack('>I6BI4', number, more, #answers) .. answers .. table.concat(claimed)
  redis.call('HSET', turns, worker, kept_now)
end
return { 'done', answers, more, unpack(answer) }
