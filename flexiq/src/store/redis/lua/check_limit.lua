-- check_limit: looks whether a named limit goes together, and repairs it if that is wanted.
-- ARGV  2 whether to repair; 3 up to how many permits or jobs in line are looked at: where there are more, they are not
-- Returns six of each finding, as check.lua does
local wants_repair, most_looked_at, findings = ARGV[2] == '1', tonumber(ARGV[3]), {}
local MOST_VALUES = 6000

local function found(id, what, expected)
  if #findings >= MOST_VALUES then return false end
  for _, part in ipairs({ 'named_limit', '', id, what, expected, ARGV[2] }) do
    findings[#findings + 1] = part
  end
  return wants_repair
end

for _, key in ipairs({ permits, reserved, line }) do
  if redis.call('ZCARD', key) > most_looked_at then return findings end
end

-- What of each gate is held, reserved, and reserved by who asks with a rate.
local there, gates = {}, {}
local function of_gate(gate)
  there[gate] = there[gate] or { 0, 0, 0 }
  gates[gate] = true
  return there[gate]
end

for _, member in ipairs(redis.call('ZRANGE', permits, 0, -1)) do
  local gate = of_gate(gate_of(member))
  gate[1] = gate[1] + 1
end

-- Who was called has a place, and stands among those that were called.
for _, member in ipairs(redis.call('ZRANGE', reserved, 0, -1)) do
  local gate, id = gate_of(member), string.sub(member, -16)
  local entry = read_entry(gate, id)
  if not entry then
    local what = 'a permit is reserved for a job that does not stand in line'
    if found(id, what, 'it is for one that was called out of it') then
      redis.call('ZREM', reserved, member)
    end
  else
    local counted = of_gate(gate)
    counted[2] = counted[2] + 1
    if entry.rates ~= '' then counted[3] = counted[3] + 1 end
  end
end

-- Whoever has a place stands there, either waiting or called.
local all = redis.call('HGETALL', places)
for i = 1, #all, 2 do
  local gate, id = gate_of(all[i]), string.sub(all[i], -16)
  local entry = read_entry(gate, id)
  local mark = redis.call('ZSCORE', reserved, all[i]) and CALLED or WAITS
  gates[gate] = true
  if not redis.call('ZSCORE', line, member_of(gate, mark, entry))
    and found(id, 'it waits for a permit, and does not stand in the line', 'it stands there at its place') then
    redis.call('ZADD', line, 0, member_of(gate, mark, entry))
  end
end
for _, member in ipairs(redis.call('ZRANGE', line, 0, -1)) do
  local gate, id = gate_of(member), string.sub(member, -16)
  local entry = read_entry(gate, id)
  local mark = entry and redis.call('ZSCORE', reserved, gate .. id) and CALLED or WAITS
  if (not entry or member_of(gate, mark, entry) ~= member)
    and found(id, 'a place in the line is kept, and nobody stands there', 'a job stands at one place') then
    redis.call('ZREM', line, member)
  end
end

-- What is used of each gate is counted.
local kept = redis.call('HGETALL', used)
for i = 1, #kept, 2 do
  of_gate(kept[i])
end
for gate, counted in pairs(there) do
  local is_held, is_reserved, is_counted = read_used(gate)
  if is_held ~= counted[1] or is_reserved ~= counted[2] or is_counted ~= counted[3] then
    local what = 'the counts of permits of a key that are held and reserved are %.0f and %.0f'
    what = string.format(what, is_held, is_reserved)
    if found('', what, string.format('they should be %.0f and %.0f', counted[1], counted[2])) then
      if counted[1] + counted[2] == 0 then
        redis.call('HDEL', used, gate)
      else
        redis.call('HSET', used, gate, struct.pack('>I4I4I4', unpack(counted)))
      end
    end
  end
end

-- Whoever is first will be called: by a permit that comes back, by who was called before it, or at its moment.
for gate in pairs(gates) do
  local first = first_of(gate)
  local counted = there[gate] or { 0, 0, 0 }
  if first and counted[2] == 0 and not redis.call('ZSCORE', moments, gate) then
    local has_room, opens = opening(gate, first)
    local what = 'it is first in line and may have a permit, or time will let it, and nobody looks'
    if (has_room or opens) and found(first.id, what, 'it is called') then opens_at(gate, now) end
  end
end
return findings
