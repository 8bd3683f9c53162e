-- Schedules: what is enqueued by the clock. The next moment of each stands in an order, and the first of them among the
-- fields of `meta` that a turn reads anyway.
-- Scripts make it with each call that needs it.
local schedules_made

local function of_schedules()
  if schedules_made then return schedules_made end
  local schedules, plans, ticks = KEYS[37], KEYS[38], KEYS[39]
  local KEPT_ASLEEP, TOLD_FOR, MOST_TOLD = 30 * DAY, 5000, '100'
  -- Whether it was set, is paused, is planned, and catches up; what it shows, the tick that made a job last, that for which
  -- there was no room, and since when it sleeps (0 for none); then its cron.
  local STAND = '>BBBBI6I6I6I6'
  local made = {}

  local function read(text)
    local stand, at = {}, nil
    stand.set, stand.paused, stand.planned, stand.catch_up, stand.seen, stand.last, stand.skipped, stand.asleep, at =
      struct.unpack(STAND, text)
    stand.cron = string.sub(text, at)
    return stand
  end

  function made.find(name)
    local text = redis.call('HGET', schedules, name)
    return text and read(text)
  end

  local function write(name, stand)
    local head = struct.pack(STAND, stand.set, stand.paused, stand.planned, stand.catch_up, stand.seen, stand.last,
      stand.skipped, stand.asleep)
    redis.call('HSET', schedules, name, head .. stand.cron)
  end

  local function show_first()
    local first = score_of(redis.call('ZRANGE', ticks, 0, 0, 'WITHSCORES'))
    if first then
      redis.call('HSET', meta, 'tick_at', text_of(first))
    else
      redis.call('HDEL', meta, 'tick_at')
    end
  end

  -- Writes a schedule down. It is told of when what it shows is due; one that sleeps is forgotten at its moment.
  function made.keep(name, stand)
    if stand.asleep > 0 then
      redis.call('ZADD', ticks, text_of(stand.asleep + KEPT_ASLEEP), name)
    elseif stand.paused == 1 then
      redis.call('ZREM', ticks, name)
    else
      redis.call('ZADD', ticks, text_of(stand.seen), name)
    end
    write(name, stand)
    show_first()
  end

  function made.forget(name)
    redis.call('ZREM', ticks, name)
    redis.call('HDEL', schedules, name)
    redis.call('HDEL', plans, name)
    show_first()
  end

  -- A schedule is set or declared, by whether it catches up and its cron, and by what it enqueues. With the cron that it
  -- had, it keeps the tick that it has reached.
  function made.put(name, cron, plan, is_set)
    local stand, catch_up = made.find(name), string.byte(cron, 1)
    cron = string.sub(cron, 2)
    local begins = not stand or stand.cron ~= cron
    local was_asleep = stand and stand.asleep > 0
    stand = stand or { paused = 0, last = 0, skipped = 0 }
    stand.set, stand.catch_up, stand.cron, stand.asleep = is_set, catch_up, cron, 0
    if begins then stand.planned, stand.seen = 0, now end
    redis.call('HSET', plans, name, plan)
    if begins or was_asleep then made.keep(name, stand) else write(name, stand) end
  end

  -- What workers declare for this queue now: three of each from there on. Others that were declared sleep.
  function made.declare(first, count)
    if count == 0 and redis.call('HLEN', schedules) == 0 then return end
    local is_declared = {}
    for i = first, first + 3 * count - 1, 3 do
      local name = ARGV[i]
      local stand = made.find(name)
      is_declared[name] = true
      if not stand or stand.set == 0 then made.put(name, ARGV[i + 1], ARGV[i + 2], 0) end
    end
    local all = redis.call('HGETALL', schedules)
    for i = 1, #all, 2 do
      local name, stand = all[i], read(all[i + 1])
      if stand.set == 0 and stand.asleep == 0 and not is_declared[name] then
        stand.asleep = now
        made.keep(name, stand)
      end
    end
  end

  -- Those that are due: two of each, its name, and what is told of it. Nobody else is told of them for a while.
  function made.tell_due()
    local told = {}
    for _, name in ipairs(redis.call('ZRANGEBYSCORE', ticks, '-inf', now_text, 'LIMIT', '0', MOST_TOLD)) do
      local stand = made.find(name)
      if stand.asleep > 0 then
        made.forget(name)
      else
        redis.call('ZADD', ticks, text_of(now + TOLD_FOR), name)
        told[#told + 1] = name
        told[#told + 1] = struct.pack('>BBI6I6', stand.planned, stand.catch_up, stand.seen, now) .. stand.cron
      end
    end
    show_first()
    return told
  end

  schedules_made = made
  return made
end
