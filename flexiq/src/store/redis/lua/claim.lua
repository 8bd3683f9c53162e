-- claim: leases the best of what may start to a worker. It looks only at the heads of lanes that are open, of tasks that the
-- worker has room for, so that its work does not depend on how much waits. The second part of a turn.
local MOST_JOBS, MOST_BYTES = 1000, 4194304
-- What is answered: ids and bodies in turn, and the counters of their runs; the ids for themselves, which are kept; and
-- whether a bound ended the claim early.
local answer, counters, claimed, more = {}, {}, {}, 0

-- How partitions take turns, where there are any.
local rotation

-- Whether a cap counts what goes through a gate.
local function is_capped(through)
  return through.gate and through.gate.cap
end

-- Where there is no gate.
local OPEN = { taken = 0 }

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

-- What is wanted: free slots, and rooms by task, which are read when something of the task waits.
local function read_claim(claim_at)
  local wanted = { lease = tonumber(ARGV[claim_at]), slots = {}, rooms = {}, all = 0 }
  local slots = tonumber(ARGV[claim_at + 1])
  for i = 1, slots do
    wanted.slots[i] = tonumber(ARGV[claim_at + 1 + i])
    wanted.all = wanted.all + wanted.slots[i]
  end
  local rooms = wanted.rooms
  for i = claim_at + 2 + slots, #ARGV, 2 do
    rooms[ARGV[i]] = ARGV[i + 1]
  end
  return wanted
end

-- The tasks of which something is ready, each behind its gate; first, the gate of the queue, and whether partitions wait.
local function read_tasks(wanted)
  local all, names, tasks = redis.call('HGETALL', waiting), { '' }, {}
  local ready, in_partitions, rooms, slots = {}, {}, wanted.rooms, wanted.slots
  for i = 1, #all, 2 do
    local name, jobs = all[i], tonumber(all[i + 1])
    if string.byte(name, -1) ~= 2 then
      names[#names + 1], ready[name] = name, jobs
    elseif name ~= MANY_COUNTS then
      in_partitions[string.sub(name, 1, -2)] = jobs
    end
  end
  local has_turns = next(in_partitions) ~= nil
  if has_turns and of_partitions().reopen() then more = 1 end
  local gates = read_fields(limits, names)
  local of_queue = passage(read_gate('', gates[1]), math.min(wanted.all, MOST_JOBS))
  for i = 2, #names do
    local name = names[i]
    local room, of_turns = rooms[name], in_partitions[name] or 0
    -- Nothing is wanted of a task whose kind of slot there is none of.
    local slot, most = 0, 0
    if room then slot, most = struct.unpack('>BI4', room) end
    most = math.min(most, slots[slot + 1] or 0)
    local task = {
      name = name, ready = ready[name] - of_turns, in_turns = of_turns, slot = slot + 1, most = most, free = most,
      max_losses = room and string.sub(room, 6), through = OPEN,
    }
    if gates[i] then
      task.through = passage(read_gate(name, gates[i]), math.min(most, MOST_JOBS))
      task.free = math.min(most, task.through.room)
    end
    tasks[i - 1] = task
  end
  return of_queue, tasks, has_turns
end

-- The first so many of the one lane that is open: no order has to be found.
local function choose_of_one(of_queue, task, jobs)
  local low, high = range_of(task.name)
  local places = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', '0', text_of(math.min(jobs, MOST_JOBS)))
  local tasks = {}
  for i = 1, #places do
    tasks[i] = task
  end
  pass(task.through, #places)
  pass(of_queue, #places)
  return places, tasks, jobs > MOST_JOBS
end

-- How many others wait for any of the tasks that are wanted, and stood in the line when the bells of those that are open
-- were rung.
local function count_others(wanted, open)
  if #all_waiters() == 0 then return 0 end
  local names, others, newest = {}, 0, nil
  for i, task in ipairs(open) do
    names[i] = task.name
  end
  for _, bell in ipairs(read_fields(bells, names)) do
    if tonumber(bell) then newest = math.max(newest or 0, tonumber(bell)) end
  end
  local all = newest and redis.call('ZCOUNT', waiters, '-inf', newest) or #all_waiters()
  for index = 1, all do
    local waiter = all_waiters()[index]
    for name in pairs(wanted.rooms) do
      if wants(waiter, name) then
        others = others + 1
        break
      end
    end
  end
  return others
end

-- Chooses the best places of the lanes that are open; answers them, their tasks, and whether a bound ended it.
local function choose(wanted, of_queue, tasks, has_turns)
  local open, sources, startable = {}, 0, 0
  local slots = wanted.slots
  for _, task in ipairs(tasks) do
    if task.free > 0 and of_queue.room > 0 then
      open[#open + 1] = task
      sources = sources + (task.ready > 0 and 1 or 0) + (task.in_turns > 0 and 1 or 0)
    end
  end
  if #open == 0 then return {}, {}, false end
  local others = count_others(wanted, open)
  for _, task in ipairs(open) do
    -- What time has opened of a partition since it was looked at is not known: it may not be kept from the only one.
    local of_turns = task.in_turns
    if others > 0 and of_turns > 0 then of_turns = of_partitions().read_task(task.name).startable end
    startable = startable + math.min(task.ready + of_turns, task.through.room or math.min(task.most, MOST_JOBS) + 1)
  end
  -- While others wait, a burst is shared with them: what is left wakes the next.
  local most = math.ceil(math.min(startable, of_queue.room) / (others + 1))
  if sources == 1 and open[1].ready > 0 then
    return choose_of_one(of_queue, open[1], math.min(open[1].free, most))
  end
  local share = math.ceil(math.min(wanted.all, most, MOST_JOBS) / sources)
  local heads, unsorted, line, places, chosen = make_heads(), {}, {}, {}, {}
  local advance, put_back = heads.advance, heads.put_back
  rotation = has_turns and make_rotation(heads, passage, pass)
  local all_turns, is_bounded = {}, false
  for _, task in ipairs(open) do
    if task.ready > 0 then
      local chunk = math.max(math.min(share + 1, task.free, most), 1)
      local lane = heads.lane(task, task.ready, chunk)
      if advance(lane) then unsorted[#unsorted + 1] = lane end
    end
    if task.in_turns > 0 then
      local of_task = rotation.open(task)
      if of_task:advance() then unsorted[#unsorted + 1] = of_task end
      all_turns[#all_turns + 1] = of_task
    end
  end
  heads.line_up(unsorted, line, 1)
  local from = 1
  while line[from] and most > 0 do
    local lane = line[from]
    local task = lane.task
    local slot = task.slot
    from = from + 1
    if task.free > 0 and slots[slot] > 0 then
      local taken = #chosen + 1
      if taken > MOST_JOBS then
        is_bounded = true
        break
      end
      places[taken] = lane.places[lane.at]
      chosen[taken] = lane.take and lane:take() or task
      most, task.free, slots[slot] = most - 1, task.free - 1, slots[slot] - 1
      -- Nothing more is wanted of the others.
      if most > 0 and task.free > 0 and slots[slot] > 0 and lane.advance(lane) then put_back(line, from, lane) end
    end
  end
  for _, task in ipairs(open) do
    if task.through.gate then pass(task.through, math.min(task.most, task.through.room) - task.free) end
  end
  pass(of_queue, #chosen)
  for _, of_task in ipairs(all_turns) do
    is_bounded = is_bounded or rotation.is_bounded(of_task)
  end
  return places, chosen, is_bounded
end

-- Reads the bodies of what was chosen, and gives back what goes over the bytes that an answer may have.
local function read_bodies(of_queue, places, tasks)
  if #places == 0 then return {}, false end
  local texts, bytes, chunk = {}, 0, 128
  for i = 1, #places do
    claimed[i] = string.sub(places[i], -16)
  end
  if #places > 4 and redis.call('HSTRLEN', bodies, claimed[1]) > 8192 then chunk = 4 end
  while #texts < #places and bytes < MOST_BYTES do
    local read = #texts
    local found = redis.call('HMGET', bodies, unpack(claimed, read + 1, math.min(read + chunk, #places)))
    for i = 1, #found do
      if bytes < MOST_BYTES then
        texts[read + i] = found[i]
        bytes = bytes + #found[i]
      end
    end
  end
  local is_cut = #texts < #places
  for i = #places, #texts + 1, -1 do
    pass(tasks[i].through, -1)
    pass(of_queue, -1)
    if tasks[i].own then rotation.give_back(tasks[i]) end
    places[i], tasks[i], claimed[i] = nil, nil, nil
  end
  return texts, is_cut
end

-- What is answered of a run beside its id.
local function counters_of(job, capped)
  return struct.pack('>I4I4I4I4I6I6B', job.run, job.failures, job.deferrals, job.losses, job.due, job.started, capped)
end

-- Leases a job once more.
local function lease_again(worker, task, id, text, capped)
  local jobs = of_life()
  local job = jobs.read_run(text)
  if job.expires > 0 then remove(expiries, id) end
  job.state, job.reason, job.cancel, job.lapse = RUNNING, 0, 0, 0
  job.run, job.worker, job.started = job.run + 1, worker, now
  job.max_losses = struct.unpack('>I4', task.max_losses)
  return jobs.write_run(job), counters_of(job, capped)
end

-- What all first runs of a claim share; answers what makes the run and the counters of a task whose jobs have one beginning
-- of their bodies.
local function first_leases(worker)
  local started = struct.pack('>I6', now)
  local head, tail = '\2\0\0\0\0\0\0\1' .. worker .. string.rep('\0', 12) .. started, string.rep('\0', 18)
  local first = '\0\0\0\1' .. string.rep('\0', 12)
  return function(task, beginning, capped)
    return head .. task.max_losses .. tail .. beginning,
      first .. string.sub(beginning, -6) .. started .. (capped == 1 and '\1' or '\0')
  end
end

-- The runs that the claimed jobs have had; none if no job has a run but those that are leased or have ended. To count
-- them is less work than to look for each of many.
local function runs_of_claimed()
  if #claimed < 20 then return read_fields(runs, claimed) end
  local others = redis.call('HLEN', runs) - leased()
  for state = SUCCEEDED, EXPIRED do
    others = others - redis.call('ZCARD', ended_keys[state])
  end
  return others > 0 and read_fields(runs, claimed) or {}
end

-- Leases what was chosen.
local function lease(worker, wanted, of_queue, places, tasks, texts)
  local had = runs_of_claimed()
  local deadline = text_of(math.min(now + wanted.lease, FAR))
  local held, taken, first_lease = {}, {}, first_leases(worker)
  local first_runs, first_counters = {}, {}
  local same, before, all_capped = 0, nil, is_capped(of_queue)
  local last, capped, length, jobs = nil, 0, 0, 0
  for i = 1, #claimed do
    local id, task, body, run, now_counters = claimed[i], tasks[i], texts[i]
    if task ~= last then
      if last then taken[last] = jobs end
      capped = (all_capped or is_capped(task.through) or task.own and is_capped(task.own)) and 1 or 0
      last, length, jobs = task, begins(task.name), taken[task] or 0
    end
    jobs = jobs + 1
    if had[i] then
      run, now_counters = lease_again(worker, task, id, had[i], capped)
    else
      local beginning = string.sub(body, 1, length)
      run, now_counters = first_runs[beginning], first_counters[beginning]
      if not run then
        run, now_counters = first_lease(task, beginning, capped)
        first_runs[beginning], first_counters[beginning] = run, now_counters
      end
    end
    if now_counters ~= before and before then
      counters[#counters + 1] = struct.pack('>I2', same) .. before
      same = 0
    end
    same, before = same + 1, now_counters
    changed[2 * i - 1], changed[2 * i] = id, run
    held[2 * i - 1], held[2 * i] = deadline, id
    answer[2 * i - 1], answer[2 * i] = id, body
  end
  taken[last] = jobs
  counters[#counters + 1] = struct.pack('>I2', same) .. before
  removed[lanes], added[leases] = places, held
  for task, jobs in pairs(taken) do
    task.ready = task.ready - jobs
    if task.own then task.task.in_turns = task.task.in_turns - jobs end
    count(READY, task.name, -jobs)
    count(RUNNING, task.name, jobs)
  end
  write_jobs()
  return taken
end

-- Charges the gates of partitions that were served, and sets right all that were looked at.
local function leave_turns(taken)
  for partition in pairs(taken) do
    local own = partition.own
    if own then
      of_partitions().take_turn(partition.name, partition.turn)
      if own.taken > 0 then charge(own.gate, own.taken) end
    end
  end
  of_partitions().settle()
end

-- Sets the bells to the truth: what is startable of what this worker asked for is rung, and what it took and cannot use,
-- and what has opened; what is not startable is silent.
local function tell_truth(worker, wanted, of_queue, tasks, has_turns)
  local was = redis.call('HGETALL', bells)
  local before, sights = {}, {}
  for i = 1, #was, 2 do
    before[was[i]] = was[i + 1]
  end
  if has_turns then
    -- Those of partitions stay.
    local names = {}
    for _, task in ipairs(tasks) do
      names[#names + 1] = task.name
    end
    for name in pairs(before) do
      names[#names + 1] = name
    end
    call_in_pieces('ZREM', openings, names)
  else
    redis.call('DEL', openings)
  end
  for _, task in ipairs(tasks) do
    if task.ready + task.in_turns > 0 then
      local shut = of_queue.room == 0 and of_queue or task.through.room == 0 and task.through or nil
      local is_open = not shut and (task.ready > 0 or of_partitions().has_open(task.name))
      sights[task.name] = is_open and 'startable' or 'shut'
      if shut and shut.opens then redis.call('ZADD', openings, shut.opens, task.name) end
    end
  end
  for name in pairs(before) do
    if not sights[name] then redis.call('HDEL', bells, name) end
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
      if before[name] ~= 'shut' then redis.call('HSET', bells, name, 'shut') end
    elseif before[name] ~= 'rung' and (wanted.rooms[name] or unused[name] or before[name] == 'shut') then
      ring(name, true)
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
  local of_queue, tasks, has_turns = read_tasks(wanted)
  local places, chosen, is_bounded = choose(wanted, of_queue, tasks, has_turns)
  local texts, is_cut = read_bodies(of_queue, places, chosen)
  if has_more or is_bounded or is_cut then more = 1 end
  if #claimed > 0 then
    local taken = lease(worker, wanted, of_queue, places, chosen, texts)
    charge_passage(of_queue)
    for _, task in ipairs(tasks) do
      charge_passage(task.through)
    end
    if has_turns then leave_turns(taken) end
  elseif has_turns then
    leave_turns({})
  end
  tell_truth(worker, wanted, of_queue, tasks, has_turns)
  -- What became ready of tasks that this worker did not ask for is rung for, too.
  for name in pairs(ready_tasks) do
    if not wanted.rooms[name] and redis.call('HGET', bells, name) ~= 'rung' then set_right(name) end
  end
end
