-- The line before each gate of a named limit: who is first, and when they are called. The arithmetic of the gate is
-- gates.lua's.
local RESERVED, MOST_CALLED, MOST_FREED = 5000, 1000, 100
local STEP = 300000
-- The middle of the places, so that one may be put before all.
local MIDDLE = 2 ^ 40
-- What stands in the line behind its gate: whoever waits, and whoever was called, for that one may be put back.
local WAITS, CALLED = '\0', '\1'
-- Stands for the longest period that was ever asked with, among the paces of a gate.
local LONGEST = { text = 'longest' }

-- Jobs to be called: each its due time, its old place, its id, and its queue behind its length, then its gate.
local calls = {}

local function add_call(gate, entry, due)
  local head = struct.pack('>I6I6c16', due, entry.ready_at, entry.id)
  calls[#calls + 1] = head .. string.char(#entry.queue) .. entry.queue .. gate
end

local function call(gate, entry, due)
  entry.due = due
  add_call(gate, entry, due)
end

-- Calls one that may not have heard the first time.
local function call_again(gate, entry)
  add_call(gate, entry, 0)
end

local function member_of(gate, mark, entry)
  return gate .. mark .. struct.pack('>I7', entry.place) .. entry.id
end

-- The first or the last who waits or was called.
local function outermost(gate, mark, command)
  local low, high = '[' .. gate .. mark, '(' .. gate .. string.char(string.byte(mark) + 1)
  if command == 'ZREVRANGEBYLEX' then low, high = high, low end
  return redis.call(command, line, low, high, 'LIMIT', 0, 1)[1]
end

local function place_in(member)
  return struct.unpack('>I7', member, #member - 22)
end

local function read_entry(gate, id)
  local text = redis.call('HGET', places, gate .. id)
  if not text then return nil end
  local entry, at = { id = id }, 0
  entry.place, entry.due, entry.ready_at, entry.cap, entry.queue, at = struct.unpack('>I7I6I6I4Bc0', text)
  entry.rates = string.sub(text, at)
  return entry
end

local function write_entry(gate, entry)
  local head = struct.pack('>I7I6I6I4', entry.place, entry.due, entry.ready_at, entry.cap)
  redis.call('HSET', places, gate .. entry.id, head .. string.char(#entry.queue) .. entry.queue .. entry.rates)
end

local function first_of(gate)
  local head = outermost(gate, WAITS, 'ZRANGEBYLEX')
  return head and read_entry(gate, string.sub(head, -16))
end

-- The place before all.
local function start_of(gate)
  local least = MIDDLE + 1
  for _, mark in ipairs({ WAITS, CALLED }) do
    local member = outermost(gate, mark, 'ZRANGEBYLEX')
    if member then least = math.min(least, place_in(member)) end
  end
  return least - 1
end

-- The place behind all.
local function end_of(gate)
  local most = MIDDLE - 1
  for _, mark in ipairs({ WAITS, CALLED }) do
    local member = outermost(gate, mark, 'ZREVRANGEBYLEX')
    if member then most = math.max(most, place_in(member)) end
  end
  return most + 1
end

-- What a run asks with is kept anew.
local function asks(entry, ask)
  entry.cap, entry.rates, entry.queue, entry.ready_at = ask.cap, ask.rates, ask.queue, ask.ready_at
end

-- Puts the job of an ask into the line at a place.
local function enter(ask, place)
  local entry = { id = ask.id, place = place, due = 0 }
  asks(entry, ask)
  redis.call('ZADD', line, 0, member_of(ask.gate, WAITS, entry))
  write_entry(ask.gate, entry)
  return entry
end

-- A gate as gates.lua knows it, with nothing but rates.
local function rates_gate(gate, rates)
  return { name = gate, is_partition = true, rates = of_rates().read(rates) }
end

-- Whether one more permit may be granted beside those that are reserved, of which rates count some; if not, when time opens
-- it, where time alone does.
local function opening_beside(gate, entry, is_reserved, is_counted)
  if entry.cap > 0 and read_used(gate) + is_reserved >= entry.cap then return false end
  local opens
  if entry.rates ~= '' then
    local admitted, at = admit(rates_gate(gate, entry.rates), is_counted + 1)
    if admitted > 0 and admitted <= is_counted then return false end
    opens = at
  end
  local held_until = tonumber(redis.call('ZSCORE', holds, gate) or 0)
  if held_until > now then opens = math.max(opens or 0, held_until) end
  return opens == nil, opens
end

local function opening(gate, entry)
  local _, is_reserved, is_counted = read_used(gate)
  return opening_beside(gate, entry, is_reserved, is_counted)
end

-- Logs a start. What others may still count with a longer period is kept.
local function log_start(gate, rates)
  if rates == '' then return end
  local it = rates_gate(gate, rates)
  local before = tonumber(of_rates().read_pace(it, LONGEST) or 0)
  local longest = before
  for _, rate in ipairs(it.rates) do
    longest = math.max(longest, rate.period)
  end
  if longest > before then of_rates().write_pace(it, LONGEST, longest) end
  it.rates[#it.rates + 1] = { starts = 2 ^ 31, period = longest, spread = false, text = '' }
  charge(it, 1)
end

-- Calls one who waits: a permit is reserved for its job.
local function reserve(gate, entry)
  redis.call('ZREM', line, member_of(gate, WAITS, entry))
  redis.call('ZADD', line, 0, member_of(gate, CALLED, entry))
  redis.call('ZADD', reserved, text_of(now + RESERVED), gate .. entry.id)
  use(gate, 0, 1, entry.rates == '' and 0 or 1)
end

-- Takes back what was reserved for a job; false if nothing was.
local function unreserve(gate, entry)
  if redis.call('ZREM', reserved, gate .. entry.id) == 0 then return false end
  redis.call('ZREM', line, member_of(gate, CALLED, entry))
  use(gate, 0, -1, entry.rates == '' and 0 or -1)
  return true
end

-- Takes a job out of the line, whether it waits or was called.
local function leave(gate, entry)
  if not unreserve(gate, entry) then redis.call('ZREM', line, member_of(gate, WAITS, entry)) end
  redis.call('HDEL', places, gate .. entry.id)
end

-- Keeps when time lets the first in line have a permit.
local function opens_at(gate, moment)
  if moment then
    redis.call('ZADD', moments, text_of(moment), gate)
  else
    redis.call('ZREM', moments, gate)
  end
end

-- Calls those who are first in line for as long as there is room. Answers whether the one who is here is the next who may
-- have a permit: that one is not called.
local function advance(gate, here)
  -- A step calls so many, whatever gates it looks at.
  while #calls < MOST_CALLED do
    local first = first_of(gate)
    if not first then
      opens_at(gate, nil)
      return false
    end
    local has_room, opens = opening(gate, first)
    if first.id == here then return has_room end
    opens_at(gate, opens)
    if has_room then
      call(gate, first, now)
      reserve(gate, first)
      write_entry(gate, first)
    else
      -- Where nothing but a permit that is given back can open it, it waits to be called.
      if opens and opens ~= first.due then
        call(gate, first, opens)
        write_entry(gate, first)
      end
      return false
    end
  end
  -- The next beat goes on.
  opens_at(gate, now)
  return false
end

local function end_permit(member)
  if redis.call('ZREM', permits, member) == 0 then return false end
  use(gate_of(member), -1, 0, 0)
  return true
end

-- Frees permits that nobody has renewed, and those that were reserved for jobs which did not come.
local function free_lapsed()
  local gates = {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', reserved, '-inf', now_text, 'LIMIT', 0, MOST_FREED)) do
    local gate = gate_of(member)
    local entry = read_entry(gate, string.sub(member, -16))
    call_again(gate, entry)
    leave(gate, entry)
    gates[gate] = true
  end
  local lapsed = redis.call('ZRANGEBYSCORE', permits, '-inf', now_text, 'LIMIT', 0, MOST_FREED)
  if #lapsed > 0 and may_reap() then
    for _, member in ipairs(lapsed) do
      end_permit(member)
      gates[gate_of(member)] = true
    end
  end
  for gate in pairs(gates) do
    advance(gate)
  end
end

-- How long a job waits at most with so many before it, as policy has it.
local function fallback(before, entry)
  local each = entry.cap > 0 and math.ceil(STEP / entry.cap) or 0
  for _, rate in ipairs(entry.rates == '' and {} or of_rates().read(entry.rates)) do
    each = math.max(each, math.ceil(rate.period / rate.starts))
  end
  return STEP + each * before
end
