-- Unique keys: which job has each. A key is freed through its owner alone: by the end or the start of that job, by time, or
-- when the job is deleted by hand. All of it is made where a job has a key.
local keys_made

local function of_keys()
  if keys_made then return keys_made end
  local unique, keyed, over = KEYS[34], KEYS[35], KEYS[36]
  local AT_END, AT_START, AFTER = 0, 1, 2
  -- The job, whether the key is bound to its life, and until when it is held in any case (0 for not).
  local TAKEN = '>c16BI6'
  local made = {}

  -- The job that has a key now, by what stands under it.
  local function owner_of(text)
    if not text then return nil end
    local id, bound, held_until = struct.unpack(TAKEN, text)
    return (bound == 1 or held_until > now) and id or nil
  end

  -- By what jobs are the only ones, by their index: from there on in ARGV, so many; then who has each of their keys; and
  -- whether anything stands under it.
  function made.read_calls(from, calls)
    local by_index, keys, owners, stands = {}, {}, {}, {}
    for i = 1, calls do
      local index, key, release, on_duplicate, held_for = struct.unpack('>I4c16BBI6', ARGV[from + i - 1])
      by_index[index] = { key = key, release = release, on_duplicate = on_duplicate, held_for = held_for }
      keys[i] = key
    end
    for i, text in ipairs(read_fields(unique, keys)) do
      owners[keys[i]], stands[keys[i]] = owner_of(text), text and true
    end
    return by_index, owners, stands
  end

  -- Jobs that are stored now take their keys, which nobody has: of each, its id and the call; and what stood under them is
  -- over. Forgets two keys that time has freed for each that is taken for a time, which keeps up with any rate of calls.
  function made.take(ids, calls, stands)
    local taken, of_jobs, gone, timed, over_later = {}, {}, {}, {}, 0
    for i, id in ipairs(ids) do
      local call = calls[i]
      local bound = call.release == AFTER and 0 or 1
      local held_until = call.held_for > 0 and math.min(now + call.held_for, FAR) or 0
      taken[2 * i - 1], taken[2 * i] = call.key, struct.pack(TAKEN, id, bound, held_until)
      of_jobs[2 * i - 1], of_jobs[2 * i] = id, call.key .. string.char(call.release)
      if call.held_for > 0 then over_later = over_later + 1 end
      if stands[call.key] then gone[#gone + 1] = call.key end
      if bound == 0 then
        timed[#timed + 1] = text_of(held_until)
        timed[#timed + 1] = call.key
      end
    end
    call_in_pieces('ZREM', over, gone)
    call_in_pieces('HSET', unique, taken)
    call_in_pieces('HSET', keyed, of_jobs)
    call_in_pieces('ZADD', over, timed)
    if over_later > 0 then made.forget_over(2 * over_later) end
  end

  -- Frees the keys of jobs that have ended, or only those that a start frees.
  function made.free(ids, by_start)
    local names, owners = {}, {}
    for i, text in ipairs(read_fields(keyed, ids)) do
      local release = text and string.byte(text, 17)
      if release == AT_START or release == AT_END and not by_start then
        names[#names + 1], owners[#owners + 1] = string.sub(text, 1, 16), ids[i]
      end
    end
    local gone, kept, timed = {}, {}, {}
    for i, text in ipairs(read_fields(unique, names)) do
      local id, bound, held_until = nil, 0, 0
      if text then id, bound, held_until = struct.unpack(TAKEN, text) end
      if id == owners[i] and bound == 1 and held_until > now then
        kept[#kept + 1], kept[#kept + 2] = names[i], struct.pack(TAKEN, id, 0, held_until)
        timed[#timed + 1], timed[#timed + 2] = text_of(held_until), names[i]
      elseif id == owners[i] and bound == 1 then
        gone[#gone + 1] = names[i]
      end
    end
    call_in_pieces('HDEL', unique, gone)
    call_in_pieces('HSET', unique, kept)
    call_in_pieces('ZADD', over, timed)
  end

  -- A job that begins anew takes its key again; or answers the job that has it.
  function made.take_again(id)
    local text = redis.call('HGET', keyed, id)
    if not text or string.byte(text, 17) == AFTER then return nil end
    local key = string.sub(text, 1, 16)
    local stands = redis.call('HGET', unique, key)
    local owner = owner_of(stands)
    if owner and owner ~= id then return owner end
    local held_until = 0
    if stands and string.sub(stands, 1, 16) == id then held_until = struct.unpack('>I6', stands, 18) end
    redis.call('HSET', unique, key, struct.pack(TAKEN, id, 1, held_until))
    redis.call('ZREM', over, key)
    return nil
  end

  -- A job is deleted by hand: its key is free at once.
  function made.free_deleted(id)
    local text = redis.call('HGET', keyed, id)
    if not text then return end
    local key = string.sub(text, 1, 16)
    local stands = redis.call('HGET', unique, key)
    if stands and string.sub(stands, 1, 16) == id then
      redis.call('HDEL', unique, key)
      redis.call('ZREM', over, key)
    end
  end

  -- Forgets at most so many keys that time has freed.
  function made.forget_over(most)
    local keys = redis.call('ZRANGEBYSCORE', over, '-inf', now_text, 'LIMIT', '0', text_of(most))
    call_in_pieces('HDEL', unique, keys)
    call_in_pieces('ZREM', over, keys)
  end

  keys_made = made
  return made
end
