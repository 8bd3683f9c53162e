-- Holds: a run was told that nothing of its queue, task or partition should start for a while. Those of queues and tasks
-- stand in their gates, too, where every claim looks. All of it is made where something is held.
local MOST_FORGOTTEN = '1000'
local holds_made

local function make_holds()
  -- Writes into the gate of a queue or task until when it is held; nil is not at all.
  local function write(name, held_until)
    local paused, rest = string.match(redis.call('HGET', limits, name) or '0||', '^(%d)@?%d*(|.*)$')
    local gate = paused .. (held_until and '@' .. text_of(held_until) or '') .. rest
    if gate == '0||' then redis.call('HDEL', limits, name) else redis.call('HSET', limits, name, gate) end
  end

  -- Shows in a gate until when it is held.
  local function show(name, held_until)
    local _, is_partition = task_of(name)
    if is_partition then of_partitions().touch(name) else write(name, held_until) end
  end

  -- Holds a gate; a hold never ends an earlier one sooner.
  local function hold(name, held_until)
    local before = tonumber(redis.call('ZSCORE', holds, name))
    if before and before >= held_until then return end
    redis.call('ZADD', holds, text_of(held_until), name)
    show(name, held_until)
  end

  -- Forgets holds that are over. What they held has opened by itself.
  local function forget()
    local over = redis.call('ZRANGEBYSCORE', holds, '-inf', now_text, 'LIMIT', '0', MOST_FORGOTTEN)
    call_in_pieces('ZREM', holds, over)
    for _, name in ipairs(over) do
      local _, is_partition = task_of(name)
      if not is_partition then write(name, nil) end
    end
  end

  return { write = write, show = show, hold = hold, forget = forget }
end

local function of_holds()
  holds_made = holds_made or make_holds()
  return holds_made
end
