-- Gates: pause, hold, cap and rates of a task, of a partition, or of the queue (whose name here is ''). The arithmetic is
-- policy's.
-- What reckons with rates is made where there is one.
local rates_made

local function make_rates()
  local function read(text)
    local rates = {}
    for n, period, spread in string.gmatch(text, '(%d+)/(%d+)( ?%a*)') do
      rates[#rates + 1] = { starts = tonumber(n), period = tonumber(period), spread = spread ~= '', text = n .. '/' .. period }
    end
    return rates
  end

  -- The log of starts: a member for all that started together, `gate \0 number starts moment`.
  local function newest_start(gate)
    local head = redis.call('ZREVRANGEBYLEX', starts, '(' .. gate.name .. '\1', '[' .. gate.name .. '\0', 'LIMIT', 0, 1)[1]
    if not head then return nil end
    local number, count, at = struct.unpack('>I6I4I6', head, #gate.name + 2)
    return { member = head, number = number, starts = count, at = at }
  end

  -- The moment of the nth newest start; nil if there are fewer.
  local function nth_newest(gate, newest, n)
    if not newest then return nil end
    local number = newest.number + newest.starts - n
    if number >= newest.number then return newest.at end
    if number < 1 then return nil end
    local most = '(' .. gate.name .. '\0' .. struct.pack('>I6', number + 1)
    local head = redis.call('ZREVRANGEBYLEX', starts, most, '[' .. gate.name .. '\0', 'LIMIT', 0, 1)[1]
    if not head then return nil end
    local _, _, at = struct.unpack('>I6I4I6', head, #gate.name + 2)
    return at
  end

  local function interval(rate)
    return math.max(math.ceil(rate.period * 1000 / rate.starts), 1)
  end

  -- The moment of the next evenly spaced start, in microseconds.
  local function first_paced(at, pace)
    return math.max(pace, at * 1000 - 999)
  end

  -- A partition may go: where its rates stand is kept together, so that all of it can.
  local function read_pace(gate, rate)
    if not gate.is_partition then return redis.call('HGET', paces, gate.name .. '\0' .. rate.text) end
    local all = redis.call('HGET', paces, gate.name .. '\0')
    return all and string.match(all, ';' .. rate.text .. '=(%d+)')
  end

  local function write_pace(gate, rate, pace)
    if not gate.is_partition then return redis.call('HSET', paces, gate.name .. '\0' .. rate.text, text_of(pace)) end
    local all = redis.call('HGET', paces, gate.name .. '\0') or ''
    all = string.gsub(all, ';' .. rate.text .. '=%d+', '') .. ';' .. rate.text .. '=' .. text_of(pace)
    redis.call('HSET', paces, gate.name .. '\0', all)
  end

  local function pace_of(gate, rate, newest)
    local kept = tonumber(read_pace(gate, rate) or 0)
    -- A rate that was not in force at the last start is spaced from it all the same.
    if newest then kept = math.max(kept, first_paced(newest.at, 0) + interval(rate)) end
    return kept
  end

  -- How many of `wanted` starts a rate admits at `at`, and when one more.
  local function admit_rate(gate, rate, newest, wanted, at)
    local function leaves(k)
      local start = nth_newest(gate, newest, rate.starts - k + 1)
      return start and start + rate.period or at
    end
    local admitted, refused = 0, math.min(wanted, rate.starts) + 1
    while refused - admitted > 1 do
      local k = admitted + math.floor((refused - admitted) / 2)
      if leaves(k) <= at then admitted = k else refused = k end
    end
    local opens = at + rate.period
    if admitted < rate.starts then opens = leaves(admitted + 1) end
    if not rate.spread then return admitted, opens end
    local pace = pace_of(gate, rate, newest)
    local late = at * 1000 - first_paced(at, pace)
    local paced = late < 0 and 0 or math.floor(late / interval(rate)) + 1
    local admitted_both = math.min(admitted, paced)
    local pace_opens = math.ceil((first_paced(at, pace) + interval(rate) * admitted_both) / 1000)
    if paced >= admitted then pace_opens = math.max(pace_opens, opens) end
    return admitted_both, pace_opens
  end

  -- How many of `admitted` starts all rates of a gate admit; if none, when time opens it.
  local function admit(gate, admitted)
    local newest = newest_start(gate)
    local at = newest and math.max(now, newest.at) or now
    local spent_until
    for _, rate in ipairs(gate.rates) do
      -- One that is spent by another rate must still be asked when it opens itself.
      local most, opens = admit_rate(gate, rate, newest, math.max(admitted, 1), at)
      if most == 0 then spent_until = math.max(spent_until or 0, opens) end
      admitted = math.min(admitted, most)
    end
    if spent_until then return 0, spent_until end
    return admitted
  end

  -- Logs starts that were admitted, and forgets what has left every window.
  local function charge(gate, number_of_starts)
    local newest = newest_start(gate)
    local at = newest and math.max(now, newest.at) or now
    local longest = 0
    for _, rate in ipairs(gate.rates) do
      longest = math.max(longest, rate.period)
      if rate.spread then
        local pace = first_paced(at, pace_of(gate, rate, newest)) + interval(rate) * number_of_starts
        write_pace(gate, rate, pace)
      end
    end
    local gone = {}
    local oldest = redis.call('ZRANGEBYLEX', starts, '[' .. gate.name .. '\0', '(' .. gate.name .. '\1', 'LIMIT', 0, 1000)
    for _, member in ipairs(oldest) do
      local _, _, started = struct.unpack('>I6I4I6', member, #gate.name + 2)
      if started > at - longest then break end
      gone[#gone + 1] = member
    end
    call_in_pieces('ZREM', starts, gone)
    local next_number = newest and newest.number + newest.starts or 1
    local member = gate.name .. '\0' .. struct.pack('>I6I4I6', next_number, number_of_starts, at)
    redis.call('ZADD', starts, 0, member)
    if gate.is_partition then of_partitions().log(member, at + longest, newest and newest.member, gone) end
  end

  return {
    read = read, admit = admit, charge = charge, newest_start = newest_start, admit_rate = admit_rate,
    read_pace = read_pace, write_pace = write_pace,
  }
end

local function of_rates()
  rates_made = rates_made or make_rates()
  return rates_made
end

-- A gate of `paused|cap|rates`; nil if it holds nothing back.
local function read_gate(name, text)
  if not text then return nil end
  local paused, held, cap, rates = string.match(text, '^(%d)@?(%d*)|(%d*)|(.*)$')
  return {
    name = name, is_paused = paused == '1', held_until = tonumber(held), cap = tonumber(cap),
    rates = rates == '' and {} or of_rates().read(rates),
  }
end

local function running_of(gate)
  if gate.running then return gate.running end
  if gate.name == '' then return leased() end
  local _, _, running = struct.unpack(ACTIVE, redis.call('HGET', active, gate.name) or NONE_ACTIVE)
  return running
end

-- How many of `wanted` may start; if none, when time opens the gate, if it does. Without a gate, all.
local function admit(gate, wanted)
  if not gate then return wanted end
  if gate.is_paused then return 0 end
  if gate.held_until and gate.held_until > now then return 0, gate.held_until end
  local admitted = wanted
  if gate.cap then admitted = math.min(admitted, math.max(gate.cap - running_of(gate), 0)) end
  if admitted == 0 then return 0 end
  if #gate.rates == 0 then return admitted end
  return of_rates().admit(gate, admitted)
end

-- Charges a gate for starts that it has admitted.
local function charge(gate, number_of_starts)
  if #gate.rates > 0 then of_rates().charge(gate, number_of_starts) end
end
