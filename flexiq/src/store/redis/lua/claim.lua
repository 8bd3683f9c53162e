-- claim: leases the best of what may start to a worker. It looks only at the heads of lanes that are open, of tasks that the
-- worker has room for, so that its work does not depend on how much waits. The second part of a turn.
local MOST_JOBS, MOST_BYTES = 1000, 4194304
-- What is answered, what is kept of it, and whether a bound ended the claim early.
local claimed, answer, more = {}, {}, 0

local function claimed_head(id, job, is_capped)
  return struct.pack('>c16I4I4I4I4I6I6B', id, job.run, job.failures, job.deferrals, job.losses, job.due, job.started, is_capped)
end

-- Whether a cap counts what goes through a gate.
local function is_capped(through)
  return through.gate and through.gate.cap
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
local function read_claim(claim_at)
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
local function lease(worker, wanted, of_queue, chosen, texts)
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
    local capped = (is_capped(of_queue) or is_capped(task.through)) and 1 or 0
    taken[task] = (taken[task] or 0) + 1
    if had[i] then
      local job = read_run(had[i])
      if job.expires > 0 then remove(expiries, id) end
      job.state, job.reason, job.cancel, job.lapse = RUNNING, 0, 0, 0
      job.run, job.worker, job.started, job.max_losses = job.run + 1, worker, now, task.room.max_losses
      change(id, job)
      claimed[i] = struct.pack('>c16I4', id, job.run)
      answer[#answer + 1] = claimed_head(id, job, capped)
    else
      heads[task] = heads[task] or '\2\0\0\0' .. first .. struct.pack('>I4', task.room.max_losses)
      change(id, first_run(texts[i], heads[task], tail))
      claimed[i] = id .. '\0\0\0\1'
      answer[#answer + 1] = id .. first .. string.sub(texts[i], 7, 12) .. now_text .. string.char(capped)
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
local function tell_truth(worker, wanted, of_queue, tasks)
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
local function claim(worker, claim_at)
  local wanted = read_claim(claim_at)
  -- Its leaving may still be on the way: it neither shares with itself nor is rung for what it leaves.
  leave_line(worker)
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
    lease(worker, wanted, of_queue, chosen, texts)
    charge_passage(of_queue)
    for _, task in ipairs(tasks) do
      charge_passage(task.through)
    end
  end
  tell_truth(worker, wanted, of_queue, tasks)
  -- What became ready of tasks that this worker did not ask for is rung for, too.
  for name in pairs(ready_tasks) do
    if not wanted.rooms[name] and redis.call('HGET', bells, name) ~= 'rung' then set_right(name) end
  end
end
