-- Room: the producers that wait until the queue, or a partition of it, takes their jobs. Each stands in the line of what
-- is full, in the order of arrival: a line is named '' or by its lane. Room is kept for those who stand before, for an
-- enqueue finds what they want as taken. Who has room is told by a message.
-- Scripts make it with each call: what it takes from outside is of queue.lua, which costs the least.
local room_made

local function of_room()
  if room_made then return room_made end
  local producers, producer_line = KEYS[31], KEYS[32]
  -- Kept until, jobs wanted, whether it was told, handle, declared max_pending (0 for none); then its member of the lines,
  -- `line \0 number producer`.
  local STAND = '>I6I4Bc16I6'
  local made = {}

  local function read(text)
    local stand, at = {}, nil
    stand.kept_until, stand.jobs, stand.told, stand.handle, stand.declared, at = struct.unpack(STAND, text)
    stand.member = string.sub(text, at)
    stand.line = string.sub(stand.member, 1, -24)
    return stand
  end

  local function write(id, stand)
    local head = struct.pack(STAND, stand.kept_until, stand.jobs, stand.told, stand.handle, stand.declared)
    redis.call('HSET', producers, id, head .. stand.member)
  end

  local function find(id)
    local text = redis.call('HGET', producers, id)
    return text and read(text)
  end

  local function forget(id, stand)
    redis.call('ZREM', producer_line, stand.member)
    redis.call('HDEL', producers, id)
    if redis.call('EXISTS', producers) == 0 then redis.call('HDEL', meta, 'arrivals') end
    made_room[stand.line] = true
  end

  -- Shows those who stand in a line, the first first, until `see` has seen enough. Those that have not come again are gone.
  local function walk(line, see)
    local low, high = '[' .. line .. '\0', '(' .. line .. '\1'
    while true do
      local members, ids = redis.call('ZRANGEBYLEX', producer_line, low, high, 'LIMIT', '0', '100'), {}
      if #members == 0 then return end
      for i, member in ipairs(members) do
        ids[i] = string.sub(member, -16)
      end
      for i, text in ipairs(read_fields(producers, ids)) do
        local stand = read(text)
        if stand.kept_until <= now then
          forget(ids[i], stand)
        elseif see(ids[i], stand) then
          return
        end
      end
      low = '(' .. members[#members]
    end
  end

  -- How much those want who stand before a producer, or all where it does not stand there; of no more than `enough`.
  function made.kept(line, id, enough)
    local jobs = 0
    walk(line, function(other, stand)
      if other == id then return true end
      jobs = jobs + stand.jobs
      return jobs > enough
    end)
    return jobs
  end

  function made.leave(id)
    local stand = find(id)
    if stand then forget(id, stand) end
  end

  -- Stands in line, at the place that it has there or at the end, and leaves any other.
  function made.stand(line, id, handle, jobs, declared)
    local before = find(id)
    if before and (before.line ~= line or before.kept_until <= now) then
      forget(id, before)
      before = nil
    end
    local stand = { line = line, kept_until = now + 15000, jobs = jobs, told = 0, handle = handle, declared = declared }
    if before then
      stand.member = before.member
    else
      stand.member = line .. '\0' .. struct.pack('>I6', redis.call('HINCRBY', meta, 'arrivals', 1)) .. id
      redis.call('ZADD', producer_line, 0, stand.member)
    end
    write(id, stand)
  end

  local function tell_line(line)
    local set, taken
    if line == '' then
      set, taken = redis.call('HGET', meta, 'max_pending'), pending_jobs()
    else
      set, taken = redis.call('HGET', limits, line .. '\0'), of_partitions().pending_of(line)
    end
    walk(line, function(id, stand)
      local most = tonumber(set) or stand.declared
      if most > 0 and taken + stand.jobs > most then return true end
      if stand.told == 0 then
        if redis.call('PUBLISH', prefix .. ':' .. stand.handle, 'r' .. id .. queue_name) == 0 then
          forget(id, stand)
          return false
        end
        stand.told = 1
        write(id, stand)
      end
      taken = taken + stand.jobs
      return false
    end)
  end

  -- Tells those for whom there is room, from the first of each line on, where this step has made room.
  function made.tell()
    if next(made_room) == nil then return end
    local lines = made_room
    made_room = {}
    tell_line('')
    for line in pairs(lines) do
      if string.find(line, '\2', 1, true) then tell_line(line) end
    end
  end

  -- The same in all lines.
  function made.tell_all()
    local low = '-'
    while true do
      local member = redis.call('ZRANGEBYLEX', producer_line, low, '+', 'LIMIT', '0', '1')[1]
      if not member then break end
      local line = string.sub(member, 1, -24)
      made_room[line] = true
      low = '(' .. line .. '\1'
    end
    made.tell()
  end

  room_made = made
  return made
end
