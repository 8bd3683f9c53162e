-- Partitions: which of them may start something, and whose turn it is. Each is set right at the end of the step that
-- changed its jobs, its leases or its limits, or when time opens its gate; so a claim finds those that are open in an order
-- of their own, however many are shut. All of it is made where a lane is a partition.
local MOST_REOPENED = '1000'
local partitions_made

local function make_partitions()
  -- Jobs that are ready, running and scheduled; its turn; and how much its gate lets start. If that is anything, there
  -- follows where it stands among the turns: rank, turn, age and id.
  local RECORD = '>I4I4I4I6I4'
  local touched, turns_taken, tasks_read = {}, {}, {}
  local made = {}

  local function touch(lane)
    has_partitions = true
    touched[lane] = touched[lane] or { [READY] = 0, [RUNNING] = 0, [SCHEDULED] = 0 }
    return touched[lane]
  end

  local function move(lane, state, jobs)
    local moves = touch(lane)
    moves[state] = moves[state] + jobs
  end

  -- Counts what has moved for the tasks, and keeps it for the partitions.
  local function count_moves()
    for state, by_lane in pairs(moved) do
      local by_task = {}
      for lane, jobs in pairs(by_lane) do
        local task, is_partition = task_of(lane)
        by_task[task] = (by_task[task] or 0) + jobs
        if is_partition then
          if state == READY then moved_in_partitions[task] = (moved_in_partitions[task] or 0) + jobs end
          if state <= RUNNING then move(lane, state, jobs) end
        end
      end
      moved[state] = by_task
    end
  end

  local function read_record(text)
    local record = {}
    if not text then text = struct.pack(RECORD, 0, 0, 0, 0, 0) end
    record[READY], record[RUNNING], record[SCHEDULED], record.turn, record.startable = struct.unpack(RECORD, text)
    record.stands = string.sub(text, 23)
    return record
  end

  -- What its partitions have in common: how often they were served, and how much of them may start.
  local function read_task(task)
    if not tasks_read[task] then
      local served, startable = struct.unpack('>I6I6', redis.call('HGET', partitioned, task) or string.rep('\0', 12))
      tasks_read[task] = { served = served, startable = startable }
    end
    return tasks_read[task]
  end

  -- The gates of lanes of which so many run; none where nothing is held back.
  local function read_gates(names, records)
    local fields = {}
    for i, lane in ipairs(names) do
      fields[2 * i - 1], fields[2 * i] = lane, task_of(lane) .. '\2'
    end
    local texts, gates = read_fields(limits, fields), {}
    local any_held = redis.call('EXISTS', holds) == 1
    for i, lane in ipairs(names) do
      local held_until = any_held and tonumber(redis.call('ZSCORE', holds, lane))
      local gate = read_gate(lane, texts[2 * i - 1] or texts[2 * i] or held_until and '0||')
      if gate then
        gate.is_partition, gate.running, gate.held_until = true, records[i][RUNNING], held_until or nil
      end
      gates[i] = gate or false
    end
    return gates
  end

  local function read_all(names)
    local records = {}
    for i, text in ipairs(read_fields(partitions, names)) do
      records[i] = read_record(text)
    end
    return records, read_gates(names, records)
  end

  -- Works out where a partition stands; answers when time opens its gate, if that is what keeps it waiting.
  local function look_at(lane, record, gate)
    record.startable, record.stands = 0, ''
    if record[READY] == 0 then return nil end
    local opens
    record.startable, opens = admit(gate or nil, math.min(record[READY], 1000))
    if record.startable == 0 then return opens end
    local low, high = range_of(lane)
    local head = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', '0', '1')[1]
    local order = struct.unpack('>I7', head, #lane + 2)
    record.stands = struct.pack('>BI6I6', math.floor(order / 2 ^ 44), record.turn, order % 2 ^ 44) .. string.sub(head, -16)
    return nil
  end

  -- Sets right all that were touched. One of which nothing is left goes.
  local function settle()
    local names = {}
    for lane in pairs(touched) do
      names[#names + 1] = lane
    end
    if #names == 0 then return end
    local records, gates = read_all(names)
    local gone, written, left_order, come, opened, shut = {}, {}, {}, {}, {}, {}
    for i, lane in ipairs(names) do
      local record, moves = records[i], touched[lane]
      local task = task_of(lane)
      local common = read_task(task)
      local was_ready, was_startable, stood = record[READY], record.startable, record.stands
      for state = SCHEDULED, RUNNING do
        record[state] = record[state] + moves[state]
      end
      if gates[i] then gates[i].running = record[RUNNING] end
      -- One that comes stands before the one that was served last.
      if was_ready == 0 then record.turn = 2 * common.served end
      record.turn = turns_taken[lane] or record.turn
      local opens = look_at(lane, record, gates[i])
      if opens then
        shut[#shut + 1] = text_of(opens)
        shut[#shut + 1] = lane
      else
        opened[#opened + 1] = lane
      end
      common.startable = common.startable + record.startable - was_startable
      common.has_changed = common.has_changed or record.startable ~= was_startable
      if stood ~= record.stands then
        if stood ~= '' then left_order[#left_order + 1] = task .. '\0' .. stood .. lane end
        if record.stands ~= '' then
          -- Whatever made this step look at it: its moment is gone, so its bell must be set right.
          if stood == '' then ready_tasks[task] = true end
          come[#come + 1] = '0'
          come[#come + 1] = task .. '\0' .. record.stands .. lane
        end
      end
      if record[READY] + record[RUNNING] + record[SCHEDULED] == 0 then
        gone[#gone + 1] = lane
      else
        written[#written + 1] = lane
        written[#written + 1] = struct.pack(RECORD, record[READY], record[RUNNING], record[SCHEDULED], record.turn,
          record.startable) .. record.stands
      end
    end
    call_in_pieces('ZREM', turn_order, left_order)
    call_in_pieces('ZREM', openings, opened)
    call_in_pieces('HDEL', partitions, gone)
    call_in_pieces('HSET', partitions, written)
    call_in_pieces('ZADD', turn_order, come)
    call_in_pieces('ZADD', openings, shut)
    for task, common in pairs(tasks_read) do
      if common.has_changed then
        redis.call('HSET', partitioned, task, struct.pack('>I6I6', common.served, common.startable))
        common.has_changed = false
      end
    end
    touched, turns_taken = {}, {}
  end

  -- Looks again at partitions whose gate time has opened, and at some of all where a limit of each was changed; answers
  -- whether more are left.
  local function reopen()
    local over = redis.call('ZRANGEBYSCORE', openings, '-inf', now_text, 'LIMIT', '0', MOST_REOPENED)
    local opened = {}
    for _, name in ipairs(over) do
      local _, is_partition = task_of(name)
      -- The moment of a task stays until its bell is set right.
      if is_partition then
        opened[#opened + 1] = name
        touch(name)
      end
    end
    call_in_pieces('ZREM', openings, opened)
    local cursor = redis.call('HGET', meta, 'reopens')
    if cursor then
      local found = redis.call('HSCAN', partitions, cursor, 'COUNT', MOST_REOPENED)
      for i = 1, #found[2], 2 do
        if read_record(found[2][i + 1])[READY] > 0 then touch(found[2][i]) end
      end
      cursor = found[1] ~= '0' and found[1]
      if cursor then redis.call('HSET', meta, 'reopens', cursor) else redis.call('HDEL', meta, 'reopens') end
    end
    settle()
    return cursor or #over == tonumber(MOST_REOPENED)
  end

  -- Whether a partition of a task may start something, or may turn out to.
  local function has_open(task)
    local low, high = range_of(task)
    return #redis.call('ZRANGEBYLEX', turn_order, low, high, 'LIMIT', '0', '1') > 0
      or redis.call('HEXISTS', meta, 'reopens') == 1
  end

  -- Remembers when a start has left every window; none goes before an older one. Those that are gone are forgotten.
  local function log(member, over_at, newest, gone)
    call_in_pieces('ZREM', logs, gone)
    local before = newest and tonumber(redis.call('ZSCORE', logs, newest)) or 0
    redis.call('ZADD', logs, text_of(math.max(over_at, before)), member)
  end

  -- Forgets starts of partitions, which may be gone: those that have left every window, at their time and now.
  local function forget_logs()
    local over = redis.call('ZRANGEBYSCORE', logs, '-inf', now_text, 'LIMIT', '0', MOST_REOPENED)
    if #over == 0 then return end
    local gone, kept, longest, emptied = {}, {}, {}, {}
    for _, member in ipairs(over) do
      local lane = string.sub(member, 1, -18)
      if not longest[lane] then
        local gate = read_gates({ lane }, { { [RUNNING] = 0 } })[1]
        longest[lane] = 0
        for _, rate in ipairs(gate and gate.rates or {}) do
          longest[lane] = math.max(longest[lane], rate.period)
        end
      end
      local at = struct.unpack('>I6', member, #member - 5)
      if at <= now - longest[lane] then
        gone[#gone + 1] = member
        emptied[lane] = true
      else
        -- A longer rate holds now: it is looked at when it has left that.
        kept[#kept + 1] = text_of(at + longest[lane])
        kept[#kept + 1] = member
      end
    end
    call_in_pieces('ZREM', starts, gone)
    call_in_pieces('ZREM', logs, gone)
    call_in_pieces('ZADD', logs, kept)
    for lane in pairs(emptied) do
      local low, high = range_of(lane)
      if #redis.call('ZRANGEBYLEX', starts, low, high, 'LIMIT', '0', '1') == 0 then
        redis.call('HDEL', paces, lane .. '\0')
      end
    end
  end

  -- The pending jobs of a partition, as they were before this step.
  local function pending_of(lane)
    local record = read_record(redis.call('HGET', partitions, lane))
    return record[READY] + record[SCHEDULED]
  end

  -- The partition was served: it is the last now.
  local function take_turn(lane, turn)
    touch(lane)
    turns_taken[lane] = turn
    read_task(task_of(lane)).has_changed = true
  end

  made.touch, made.move, made.count_moves, made.settle, made.reopen, made.has_open = touch, move, count_moves, settle, reopen, has_open
  made.log, made.forget_logs, made.pending_of, made.take_turn = log, forget_logs, pending_of, take_turn
  made.read_all, made.read_task = read_all, read_task
  return made
end

of_partitions = function()
  partitions_made = partitions_made or make_partitions()
  return partitions_made
end
