-- The keys of a named limit, and how its gates and its jobs are written. A gate is one key of the limit behind its length,
-- so that none begins another.
-- KEYS  those of keys.rs, in its order
-- ARGV  now; then the script's own from 2
local meta, permits, reserved, line, places, used, holds, moments, starts, paces, logs = unpack(KEYS)

-- What an asking run sends: job, run, number (0 for none), hold (0 for none), and when the job was ready; key and queue
-- behind their lengths; rates.
local function read_ask(text)
  local ask, at = {}, 0
  ask.id, ask.run, ask.cap, ask.hold, ask.ready_at, at = struct.unpack('>c16I4I4I6I6', text)
  local key_length = string.byte(text, at)
  ask.gate = string.sub(text, at, at + key_length)
  ask.queue, at = struct.unpack('>Bc0', text, at + key_length + 1)
  ask.rates = string.sub(text, at)
  ask.permit = ask.gate .. ask.id .. struct.pack('>I4', ask.run)
  return ask
end

-- The gate with which a member begins.
local function gate_of(member)
  return string.sub(member, 1, 1 + string.byte(member, 1))
end

-- Permits of a gate that are held; those that are reserved, and how many of these rates will count.
local function read_used(gate)
  local text = redis.call('HGET', used, gate)
  if not text then return 0, 0, 0 end
  return struct.unpack('>I4I4I4', text)
end

local function use(gate, more_held, more_reserved, more_counted)
  local is_held, is_reserved, is_counted = read_used(gate)
  is_held, is_reserved, is_counted = is_held + more_held, is_reserved + more_reserved, is_counted + more_counted
  if is_held + is_reserved == 0 then
    redis.call('HDEL', used, gate)
  else
    redis.call('HSET', used, gate, struct.pack('>I4I4I4', is_held, is_reserved, is_counted))
  end
end

-- The starts of what comes and goes, as gates.lua logs them.
local function of_partitions()
  return {
    log = function(member, over_at, newest, gone)
      call_in_pieces('ZREM', logs, gone)
      local before = newest and tonumber(redis.call('ZSCORE', logs, newest)) or 0
      redis.call('ZADD', logs, text_of(math.max(over_at, before)), member)
    end,
  }
end

-- Forgets starts that have left every window.
local function forget_logs()
  local over = redis.call('ZRANGEBYSCORE', logs, '-inf', now_text, 'LIMIT', 0, 1000)
  call_in_pieces('ZREM', starts, over)
  call_in_pieces('ZREM', logs, over)
  for _, member in ipairs(over) do
    local gate = gate_of(member)
    local left = redis.call('ZRANGEBYLEX', starts, '[' .. gate .. '\0', '(' .. gate .. '\1', 'LIMIT', 0, 1)
    if #left == 0 then redis.call('HDEL', paces, gate .. '\0') end
  end
end
