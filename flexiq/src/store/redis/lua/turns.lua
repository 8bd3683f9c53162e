-- turns: the partitions of one task, as a claim takes from them by turns: the priority of the head first, then who has
-- waited longest for its turn, then the age of the head. Made where a partition waits.
local function make_rotation(heads, passage, pass)
  -- A claim looks at so many partitions of a task that turn out to be shut.
  local MOST_SHUT = 1000

  local function goes_before(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    if a.turn ~= b.turn then return a.turn < b.turn end
    return heads.goes_first(a, b)
  end

  -- Reads the next partitions in the order of their rotating, with their gates.
  local function read_on(rotating)
    local name = rotating[TASK].name
    local low, high = range_of(name)
    local members = redis.call('ZRANGEBYLEX', turn_order, rotating.after or low, high, 'LIMIT', '0', text_of(rotating.chunk))
    local names = {}
    for i, member in ipairs(members) do
      names[i] = string.sub(member, #name + 31)
    end
    local records, gates = of_partitions().read_all(names)
    rotating.standing, rotating.at_standing = {}, 1
    for i, member in ipairs(members) do
      local rank, turn, due, first, second, third = struct.unpack('>BI6I6I6I6I4', member, #name + 2)
      rotating.standing[i] = {
        rank * 2 ^ 44 + due, first, second, third, name = names[i], rank = rank, turn = turn, ready = records[i][READY],
        gate = gates[i] or nil,
      }
    end
    rotating.is_read = #members < rotating.chunk
    rotating.after = '(' .. (members[#members] or '')
    rotating.chunk = math.min(rotating.chunk * 4, 256)
  end

  -- Puts a partition where its turn stands: mostly that is the first place or the last.
  local function put(rotating, partition)
    local lane, open = partition.lane, rotating.open
    for part = ORDER, THIRD do
      partition[part] = lane[part]
    end
    partition.rank = math.floor(lane[ORDER] / 2 ^ 44)
    if rotating.from > rotating.to then rotating.from, rotating.to = 1, 0 end
    if rotating.to > 0 and goes_before(partition, open[rotating.from]) then
      rotating.from = rotating.from - 1
      open[rotating.from] = partition
      return
    end
    local at = rotating.to + 1
    while at > rotating.from and goes_before(partition, open[at - 1]) do
      open[at] = open[at - 1]
      at = at - 1
    end
    open[at] = partition
    rotating.to = rotating.to + 1
  end

  -- Looks at the gate of the next partition that is read.
  local function look(rotating)
    local partition = rotating.standing[rotating.at_standing]
    rotating.at_standing = rotating.at_standing + 1
    local task = rotating[TASK]
    partition.task, partition.room, partition.through, partition.free = task, task.room, task.through, task.free
    partition.own = passage(partition.gate, math.min(partition.ready, 1000))
    if partition.own.room == 0 then
      of_partitions().touch(partition.name)
      rotating.shut = rotating.shut + 1
    else
      partition.lane = heads.of_tasks({ partition }, 2)[1]
      if partition.lane then put(rotating, partition) end
    end
  end

  -- The place of the job whose turn it is, after the one that was taken; false if there is none.
  local function advance(rotating)
    local served = rotating.current
    rotating.current = nil
    if served and served.own.room > 0 and heads.advance(served.lane) then put(rotating, served) end
    while rotating.shut < MOST_SHUT do
      if rotating.at_standing > #rotating.standing and not rotating.is_read then read_on(rotating) end
      local standing, open = rotating.standing[rotating.at_standing], rotating.open[rotating.from]
      if not standing or open and goes_before(open, standing) then break end
      look(rotating)
    end
    local current = rotating.from <= rotating.to and rotating.open[rotating.from]
    if not current then return false end
    rotating.open[rotating.from] = nil
    rotating.from = rotating.from + 1
    rotating.current, rotating[PLACES][1] = current, current.lane[PLACES][current.lane[AT]]
    for part = ORDER, THIRD do
      rotating[part] = current[part]
    end
    return true
  end

  -- Takes the job whose turn it is; answers its partition.
  local function take(rotating)
    local partition, common, task = rotating.current, rotating.common, rotating[TASK]
    partition.ready, task.in_turns = partition.ready - 1, task.in_turns - 1
    pass(partition.own, 1)
    common.served = common.served + 1
    partition.turns_before = { turn = partition.turn, before = partition.turns_before }
    partition.turn = 2 * common.served + 1
    return partition
  end

  -- Gives a job back that was taken last.
  local function give_back_turn(partition)
    local task = partition.task
    partition.ready, task.in_turns = partition.ready + 1, task.in_turns + 1
    pass(partition.own, -1)
    local common = of_partitions().read_task(task.name)
    common.served = common.served - 1
    partition.turn, partition.turns_before = partition.turns_before.turn, partition.turns_before.before
  end

  -- The turns of a task: a lane whose head is that of the partition whose turn it is.
  local function open(task)
    return {
      0, 0, 0, 0, task, {}, 1, common = of_partitions().read_task(task.name), advance = advance, take = take,
      standing = {}, at_standing = 1, chunk = 8, open = {}, from = 1, to = 0, shut = 0,
    }
  end

  local function is_bounded(rotating)
    return rotating.shut >= MOST_SHUT
  end

  return { open = open, give_back = give_back_turn, is_bounded = is_bounded }
end
