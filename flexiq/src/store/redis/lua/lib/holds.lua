-- Holds: a run was told that nothing of its queue, task or partition should start for a while. Those of queues and tasks
-- stand in their gates, too, where every claim looks.

-- Writes into a gate until when it is held; nil is not at all.
local function write_hold(name, held_until)
  local paused, rest = string.match(redis.call('HGET', limits, name) or '0||', '^(%d)@?%d*(|.*)$')
  local gate = paused .. (held_until and '@' .. text_of(held_until) or '') .. rest
  if gate == '0||' then redis.call('HDEL', limits, name) else redis.call('HSET', limits, name, gate) end
end

-- Says of a gate until when it is held, or that it is not.
local function show_hold(name, held_until)
  local _, is_partition = task_of(name)
  if is_partition then of_partitions().touch(name) else write_hold(name, held_until) end
end

-- Holds a gate; a hold never ends an earlier one sooner.
local function hold(name, held_until)
  local before = tonumber(redis.call('ZSCORE', holds, name))
  if before and before >= held_until then return end
  redis.call('ZADD', holds, text_of(held_until), name)
  show_hold(name, held_until)
end

-- Forgets holds that are over. What they held has opened by itself.
local function forget_holds()
  local over = redis.call('ZRANGEBYSCORE', holds, '-inf', now_text, 'LIMIT', '0', MOST_REOPENED)
  call_in_pieces('ZREM', holds, over)
  for _, name in ipairs(over) do
    local _, is_partition = task_of(name)
    if not is_partition then write_hold(name, nil) end
  end
end
