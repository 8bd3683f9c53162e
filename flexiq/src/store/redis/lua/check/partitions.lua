-- Partitions: whether what is kept of each is what its jobs and its gate say.

-- Running jobs by their lanes; nil if there are too many for one step.
local leases_by_lane
local function running_in(lane)
  if not leases_by_lane then
    leases_by_lane = {}
    if leased() > most_counted then
      leases_by_lane.is_unknown = true
    else
      for _, text in ipairs(read_fields(runs, redis.call('ZRANGE', leases, 0, -2))) do
        local of = text and lane_of(text)
        if of then leases_by_lane[of] = (leases_by_lane[of] or 0) + 1 end
      end
    end
  end
  if leases_by_lane.is_unknown then return nil end
  return leases_by_lane[lane] or 0
end

-- What is there of a partition.
local function count_partition(lane, record)
  local low, high = range_of(lane)
  return {
    [READY] = redis.call('ZLEXCOUNT', lanes, low, high),
    [SCHEDULED] = redis.call('ZLEXCOUNT', delayed, low, high),
    [RUNNING] = running_in(lane) or record[RUNNING],
  }
end

-- Counts partitions anew, and sets them right.
local function set_partitions_right()
  if not next(miscounted) then return end
  leases_by_lane = nil
  for lane in pairs(miscounted) do
    local records = of_partitions().read_all({ lane })
    local there, moves = count_partition(lane, records[1]), of_partitions().touch(lane)
    -- Where its record says that it stands, it is looked for when that changes.
    local stands = records[1].stands
    if stands ~= '' then redis.call('ZADD', turn_order, 0, task_of(lane) .. '\0' .. stands .. lane) end
    for state = SCHEDULED, RUNNING do
      moves[state] = there[state] - records[1][state]
    end
  end
  of_partitions().settle()
end

-- Whether a partition does not stand among the turns as it should.
local function is_out_of_turn(lane, task, record, gate)
  if record[READY] == 0 then return record.startable > 0 or record.stands ~= '' end
  if record.startable > 0 then
    local low, high = range_of(lane)
    local head = redis.call('ZRANGEBYLEX', lanes, low, high, 'LIMIT', '0', '1')[1]
    if not head then return true end
    local order = struct.unpack('>I7', head, #lane + 2)
    local stands = struct.pack('>BI6I6', math.floor(order / 2 ^ 44), record.turn, order % 2 ^ 44)
    stands = stands .. string.sub(head, -16)
    return record.stands ~= stands or record.startable > record[READY]
      or not redis.call('ZSCORE', turn_order, task .. '\0' .. stands .. lane)
  end
  if record.stands ~= '' then return true end
  -- It is looked at again by its moment, or with all others.
  if redis.call('ZSCORE', openings, lane) or redis.call('HEXISTS', meta, 'reopens') == 1 then return false end
  local admitted, opens = admit(gate or nil, 1)
  return admitted > 0 or opens ~= nil
end

local function look_at_partitions()
  local names = every_second(scan('HSCAN', partitions), 1)
  local records, gates = of_partitions().read_all(names)
  for i, lane in ipairs(names) do
    local record, task = records[i], task_of(lane)
    local there, is_wrong = count_partition(lane, record), false
    for state = SCHEDULED, RUNNING do
      if record[state] ~= there[state] then
        local what = string.format('the count of jobs of a partition that are %s is %.0f', STATES[state], record[state])
        is_wrong = found('count', task, '', what, string.format('it should be %.0f', there[state])) or is_wrong
      end
    end
    local jobs = there[READY] + there[SCHEDULED] + there[RUNNING]
    if jobs + record[READY] + record[SCHEDULED] + record[RUNNING] == 0 then
      local what = 'a partition is kept of which nothing is pending or runs'
      is_wrong = found('orphan', task, '', what, 'it goes with its last job') or is_wrong
    elseif is_out_of_turn(lane, task, record, gates[i]) then
      local what = 'a partition stands among the turns otherwise than its jobs and its gate say'
      is_wrong = found('turn', task, '', what, 'it is set right by whatever changes one of them') or is_wrong
    end
    if is_wrong then recount_later(lane) end
  end
end

-- The places among the turns: `task \0 rank turn age id lane`, of which the 29 bytes in the middle are kept with the
-- partition.
local function look_at_turns()
  local members, names, places, gone = every_second(scan('ZSCAN', turn_order), 1), {}, {}, {}
  for i, member in ipairs(members) do
    local mark = string.find(member, '\0', 1, true) or #member
    places[i], names[i] = string.sub(member, mark + 1, mark + 29), string.sub(member, mark + 30)
  end
  local records = of_partitions().read_all(names)
  for i, member in ipairs(members) do
    if records[i].stands ~= places[i] then
      local what = 'a partition stands among the turns where it is not'
      if found('orphan', (task_of(names[i])), '', what, 'it stands at one place') then gone[#gone + 1] = member end
    end
  end
  call_in_pieces('ZREM', turn_order, gone)
end
