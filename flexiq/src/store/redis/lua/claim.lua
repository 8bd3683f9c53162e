-- claim: leases the best of what may start to a worker. It looks only at the heads of lanes that are open, of tasks that the
-- worker has room for, so that its work does not depend on how much waits. The second part of a turn.
local MOST_JOBS, MOST_BYTES = 1000, 4194304
-- What is answered: ids and bodies in turn, and the counters of their runs; the ids for themselves, which are kept; and
-- whether a bound ended the claim early.
local answer, counters, claimed, more = {}, {}, {}, 0

-- How partitions take turns, where there are any.
local rotation

-- Where there is no gate, and where nothing is wanted.
local OPEN, NO_ROOM = { taken = 0, is_capped = false }, { slot = 1, most = 0 }

-- A gate as this claim goes through it. It is asked for one more, so that it is known whether it is open afterwards.
local function passage(gate, wanted)
  local most, opens = admit(gate, wanted + 1)
  return { gate = gate, room = most, opens = opens, taken = 0, is_capped = gate and gate.cap ~= nil }
end

local function pass(through, jobs)
  if through.gate then
    through.room = through.room - jobs
    through.taken = through.taken + jobs
  end
end

local function charge_passage(through)
  if through.taken == 0 then return end
  local gate = through.gate
  if gate.running then gate.running = gate.running + through.taken end
  charge(gate, through.taken)
  if through.room == 0 then
    through.room, through.opens = admit(gate, 1)
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

-- Reads a room. Nothing is wanted of a task whose kind of slot there is none of.
local function read_room(text, slots)
  local slot, most = struct.unpack('>BI4', text)
  return { slot = slot + 1, most = math.min(most, slots[slot + 1] or 0), max_losses = string.sub(text, 6) }
end

-- The tasks of which something is ready; then whether some of it is in partitions.
local function read_tasks(wanted)
  local all, tasks, at, has_turns = redis.call('HGETALL', active), {}, 0, false
  local rooms, slots, by_text, parse = wanted.rooms, wanted.slots, {}, struct.unpack
  for i = 1, #all, 2 do
    local name = all[i]
    local ready, in_turns, running = parse(ACTIVE, all[i + 1])
    if ready > 0 then
      local text, room = rooms[name], NO_ROOM
      if text then
        -- Rooms are mostly alike.
        room = by_text[text]
        if not room then
          room = read_room(text, slots)
          by_text[text] = room
        end
      end
      if in_turns > 0 then has_turns = true end
      at = at + 1
      tasks[at] = {
        name = name, ready = ready - in_turns, in_turns = in_turns, running = running, taken = 0, room = room,
        free = room.most, through = OPEN,
      }
    end
  end
  return tasks, has_turns
end

-- The names of the queue, which is '', and of tasks.
local function names_of(tasks)
  local names = { '' }
  for i = 1, #tasks do
    names[i + 1] = tasks[i].name
  end
  return names
end

-- Puts tasks behind their gates; answers the gate of the queue, and the tasks that have one.
local function read_passages(wanted, tasks)
  local gates, gated = {}, {}
  if redis.call('EXISTS', limits) == 1 then gates = read_fields(limits, names_of(tasks)) end
  for i = 2, #gates do
    if gates[i] then
      local task = tasks[i - 1]
      local gate, most = read_gate(task.name, gates[i]), task.room.most
      gate.running = task.running
      task.through = passage(gate, math.min(most, MOST_JOBS))
      task.free = math.min(most, task.through.room)
      gated[#gated + 1] = task
    end
  end
  return passage(read_gate('', gates[1]), math.min(wanted.all, MOST_JOBS)), gated
end

-- The first so many of the one lane that is open: no order has to be found.
local function choose_of_one(task, jobs)
  local low, high = range_of(task.name)
  local places = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', '0', text_of(math.min(jobs, MOST_JOBS)))
  local tasks = {}
  for i = 1, #places do
    tasks[i] = task
  end
  task.ready, task.taken = task.ready - #places, #places
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

-- The tasks of which something may start, and how many lanes and orders of partitions that makes.
local function find_open(of_queue, tasks)
  local open, at, sources = {}, 0, 0
  if of_queue.room == 0 then return open, sources end
  for i = 1, #tasks do
    local task = tasks[i]
    if task.free > 0 then
      at = at + 1
      open[at] = task
      if task.ready > 0 then sources = sources + 1 end
      if task.in_turns > 0 then sources = sources + 1 end
    end
  end
  return open, sources
end

-- What of the tasks that are open is for this worker: while others wait, a burst is shared with them, and what is left
-- wakes the next.
local function share_with(others, of_queue, open)
  -- What time has opened of a partition since it was looked at is not known: it may not be kept from the only one.
  if others == 0 then return of_queue.room end
  local startable = 0
  for i = 1, #open do
    local task = open[i]
    local of_turns = task.in_turns > 0 and of_partitions().read_task(task.name).startable or 0
    local most = task.through.room or math.min(task.room.most, MOST_JOBS) + 1
    startable = startable + math.min(task.ready + of_turns, most)
  end
  return math.ceil(math.min(startable, of_queue.room) / (others + 1))
end

-- Chooses the best places of the lanes that are open; answers them, their tasks, and whether a bound ended it.
local function choose(wanted, of_queue, tasks, has_turns)
  local open, sources = find_open(of_queue, tasks)
  if sources == 0 then return {}, {}, false end
  local slots, most = wanted.slots, math.min(share_with(count_others(wanted, open), of_queue, open), wanted.all)
  if sources == 1 and open[1].ready > 0 then
    return choose_of_one(open[1], math.min(open[1].free, open[1].ready, most))
  end
  local share = math.ceil(math.min(wanted.all, most, MOST_JOBS) / sources)
  local heads, places, chosen = make_heads(), {}, {}
  local advance, put_back = heads.advance, heads.put_back
  local unsorted, all_turns, is_bounded = heads.of_tasks(open, math.min(share + 1, most)), {}, false
  if has_turns then
    rotation = make_rotation(heads, passage, pass)
    for _, task in ipairs(open) do
      if task.in_turns > 0 then
        local of_task = rotation.open(task)
        if of_task:advance() then unsorted[#unsorted + 1] = of_task end
        all_turns[#all_turns + 1] = of_task
      end
    end
  end
  -- Whether each head that stands in the line can be taken.
  local is_plain = #slots == 1 and not has_turns
  local line, from, taken = {}, 1, 0
  local to = heads.line_up(unsorted, line, 0, ORDER)
  while from <= to and most > 0 do
    local lane = line[from]
    local task = lane[TASK]
    local slot = task.room.slot
    from = from + 1
    if task.free > 0 and slots[slot] > 0 then
      if taken == MOST_JOBS then
        is_bounded = true
        break
      end
      taken = taken + 1
      places[taken] = lane[PLACES][lane[AT]]
      if lane.take then
        chosen[taken] = lane:take()
      else
        chosen[taken], task.ready = task, task.ready - 1
      end
      most, slots[slot] = most - 1, slots[slot] - 1
      task.taken, task.free = task.taken + 1, task.free - 1
      -- Nothing more is wanted of the others, nor what comes behind as many heads as are wanted.
      if most > 0 and task.free > 0 and slots[slot] > 0 then
        local bound = is_plain and line[from + most - 1]
        if (lane.advance or advance)(lane, bound) then
          put_back(line, from, to, lane)
          to = to + 1
        end
      end
    end
  end
  for _, of_task in ipairs(all_turns) do
    is_bounded = is_bounded or rotation.is_bounded(of_task)
  end
  return places, chosen, is_bounded
end

-- Reads the bodies of what was chosen, and gives back what goes over the bytes that an answer may have.
local function read_bodies(of_queue, places, tasks)
  if #places == 0 then return {}, false end
  local texts, bytes, chunk, cut = {}, 0, 128, string.sub
  for i = 1, #places do
    claimed[i] = cut(places[i], -16)
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
    local task = tasks[i]
    if task.own then
      rotation.give_back(task)
      task = task.task
    else
      task.ready = task.ready + 1
    end
    task.taken = task.taken - 1
    pass(task.through, -1)
    pass(of_queue, -1)
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
  job.max_losses = struct.unpack('>I4', task.room.max_losses)
  return jobs.write_run(job), counters_of(job, capped)
end

-- What all first runs of a claim share; answers what makes the run and the counters of jobs that have one beginning of
-- their bodies.
local function first_leases(worker)
  local started = struct.pack('>I6', now)
  local head, tail = '\2\0\0\0\0\0\0\1' .. worker .. string.rep('\0', 12) .. started, string.rep('\0', 18)
  local first = '\0\0\0\1' .. string.rep('\0', 12)
  local of_due, cut = { [true] = {}, [false] = {} }, string.sub
  return function(room, beginning, is_capped)
    if not room.head then room.head = head .. room.max_losses .. tail end
    local due, known = cut(beginning, -6), of_due[is_capped]
    if not known[due] then known[due] = first .. due .. started .. (is_capped and '\1' or '\0') end
    return room.head .. beginning, known[due]
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

-- Writes what is active now of the tasks of which something was taken.
local function write_taken(tasks)
  local written, at, pack = {}, 0, struct.pack
  for i = 1, #tasks do
    local task = tasks[i]
    if task.taken > 0 then
      local in_turns = task.in_turns
      written[at + 1] = task.name
      written[at + 2] = pack(ACTIVE, task.ready + in_turns, in_turns, task.running + task.taken)
      at = at + 2
    end
  end
  call_in_pieces('HSET', active, written)
end

-- Leases what was chosen.
local function lease(worker, wanted, of_queue, places, chosen, texts)
  local had = runs_of_claimed()
  local deadline = text_of(math.min(now + wanted.lease, FAR))
  local held, first_lease, cut = {}, first_leases(worker), string.sub
  local first_runs, first_counters = {}, {}
  local same, before, all_capped = 0, nil, of_queue.is_capped
  local last, is_capped, length
  for i = 1, #claimed do
    local id, task, body, run, now_counters = claimed[i], chosen[i], texts[i], nil, nil
    if task ~= last then
      is_capped = all_capped or task.through.is_capped or task.own and task.own.is_capped or false
      last, length = task, begins(task.name)
    end
    if had[i] then
      run, now_counters = lease_again(worker, task, id, had[i], is_capped and 1 or 0)
    else
      local beginning = cut(body, 1, length)
      run, now_counters = first_runs[beginning], first_counters[beginning]
      if not run then
        run, now_counters = first_lease(task.room, beginning, is_capped)
        -- One of its task has no other with the same beginning.
        if task.taken ~= 1 then first_runs[beginning], first_counters[beginning] = run, now_counters end
      end
    end
    if now_counters ~= before and before then
      counters[#counters + 1] = struct.pack('>I2', same) .. before
      same = 0
    end
    same, before = same + 1, now_counters
    local at = 2 * i
    changed[at - 1], changed[at] = id, run
    held[at - 1], held[at] = deadline, id
    answer[at - 1], answer[at] = id, body
  end
  counters[#counters + 1] = struct.pack('>I2', same) .. before
  removed[lanes], added[leases] = places, held
  write_jobs()
end

-- Charges the gates of partitions that were served, and sets right all that were looked at.
local function leave_turns(chosen)
  local served = {}
  for _, partition in ipairs(chosen) do
    if partition.own then served[partition] = (served[partition] or 0) + 1 end
  end
  for partition, jobs in pairs(served) do
    local name, own = partition.name, partition.own
    made_room[name] = true
    of_partitions().move(name, READY, -jobs)
    of_partitions().move(name, RUNNING, jobs)
    of_partitions().take_turn(name, partition.turn)
    if own.taken > 0 then charge(own.gate, own.taken) end
  end
  of_partitions().settle()
end

-- Forgets at which moment time opens which task. The moments of partitions stay.
local function forget_openings(tasks, rung, has_turns)
  if not has_turns then
    redis.call('DEL', openings)
    return
  end
  local others = {}
  for name in pairs(rung) do
    others[#others + 1] = name
  end
  call_in_pieces('ZREM', openings, names_of(tasks))
  call_in_pieces('ZREM', openings, others)
end

-- The tasks whose bells a worker has taken.
local function answer_bells(worker)
  local taken, names = redis.call('HGET', popped, worker), {}
  if not taken then return names end
  redis.call('HDEL', popped, worker)
  for name in string.gmatch(taken, '%Z+') do
    names[name] = true
  end
  return names
end

-- Sets the bells to the truth: what is startable of what this worker asked for is rung, and what it took and cannot use,
-- and what has opened; what is not startable is silent.
local function tell_truth(worker, of_queue, tasks, has_turns)
  local all, before, silent, shut = redis.call('HGETALL', bells), {}, {}, {}
  for i = 1, #all, 2 do
    before[all[i]] = all[i + 1]
  end
  forget_openings(tasks, before, has_turns)
  local answered = answer_bells(worker)
  for i = 1, #tasks do
    local task = tasks[i]
    local name, through = task.name, of_queue.room == 0 and of_queue or task.through
    local was = before[name] or false
    if task.ready + task.in_turns > 0 then
      before[name] = nil
      if through.room == 0 or task.ready == 0 and not of_partitions().has_open(name) then
        if through.room == 0 and through.opens then redis.call('ZADD', openings, through.opens, name) end
        if was ~= 'shut' then
          shut[#shut + 1], shut[#shut + 2] = name, 'shut'
        end
      elseif was ~= 'rung' and (task.room ~= NO_ROOM or answered[name] or was == 'shut') then
        ring(name, true, was)
      end
    end
  end
  for name in pairs(before) do
    silent[#silent + 1] = name
  end
  call_in_pieces('HDEL', bells, silent)
  call_in_pieces('HSET', bells, shut)
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
  local tasks, has_turns = read_tasks(wanted)
  if has_turns and of_partitions().reopen() then more = 1 end
  local of_queue, gated = read_passages(wanted, tasks)
  local places, chosen, is_bounded = choose(wanted, of_queue, tasks, has_turns)
  pass(of_queue, #chosen)
  for _, task in ipairs(gated) do
    pass(task.through, task.taken)
  end
  local texts, is_cut = read_bodies(of_queue, places, chosen)
  if has_more or is_bounded or is_cut then more = 1 end
  if #claimed > 0 then
    lease(worker, wanted, of_queue, places, chosen, texts)
    made_room[''] = true
    write_taken(tasks)
    if has_keyed() then of_keys().free(claimed, true) end
    charge_passage(of_queue)
    for _, task in ipairs(gated) do
      charge_passage(task.through)
    end
  end
  if has_turns then leave_turns(chosen) end
  tell_truth(worker, of_queue, tasks, has_turns)
  -- What became ready of tasks that this worker did not ask for is rung for, too.
  for name in pairs(ready_tasks) do
    if not wanted.rooms[name] and redis.call('HGET', bells, name) ~= 'rung' then set_right(name) end
  end
end
