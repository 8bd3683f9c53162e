-- Producers that wait for room: whether each stands in the line that it is kept for.
local function look_at_producers()
  local all, producers, line_of_producers = scan('HSCAN', KEYS[31]), KEYS[31], KEYS[32]
  for i = 1, #all, 2 do
    local member = string.sub(all[i + 1], 34)
    if not redis.call('ZSCORE', line_of_producers, member) then
      local what = 'a producer waits for room, and stands in no line'
      local is_repaired = found('orphan', '', '', what, 'it stands in the line of what is full')
      if is_repaired then redis.call('HDEL', producers, all[i]) end
    end
  end
  local wait = math.min(redis.call('EXISTS', producers), redis.call('EXISTS', line_of_producers))
  local are_looked_for = redis.call('HEXISTS', meta, 'arrivals')
  local none_waits = 'producers are looked for with each step, and none waits'
  if wait < are_looked_for and found('orphan', '', '', none_waits, 'they are while any waits') then
    redis.call('HDEL', meta, 'arrivals')
  elseif wait > are_looked_for
    and found('place', '', '', 'producers wait for room, and no step looks for them', 'each does while any waits') then
    -- Later than any that has arrived.
    redis.call('HSET', meta, 'arrivals', now_text)
  end
end

local function look_at_producer_line()
  local gone = {}
  for _, member in ipairs(every_second(scan('ZSCAN', KEYS[32]), 1)) do
    local stand = redis.call('HGET', KEYS[31], string.sub(member, -16))
    if not stand or string.sub(stand, 34) ~= member then
      local what = 'a place in a line for room is kept, and nobody stands there'
      if found('orphan', '', '', what, 'it goes with its producer') then gone[#gone + 1] = member end
    end
  end
  call_in_pieces('ZREM', KEYS[32], gone)
end
