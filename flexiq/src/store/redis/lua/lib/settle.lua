-- Workers, and what they declare: the youngest living worker's word holds.
-- A worker: its place among those that registered, when it did so, when it was last heard of, when it falls silent, whether
-- it lives; then its label.
local WORKER = '>I6I6I6I6B'

local function read_worker(text)
  local born, since, beat_at, silent_at, is_alive, at = struct.unpack(WORKER, text)
  return {
    born = born, since = since, beat_at = beat_at, silent_at = silent_at, is_alive = is_alive, label = string.sub(text, at),
  }
end

local function write_worker(id, worker)
  local life = struct.pack(WORKER, worker.born, worker.since, worker.beat_at, worker.silent_at, worker.is_alive)
  redis.call('HSET', workers, id, life .. worker.label)
end

-- Works out which crons hold: of each task the word of whoever's word on its limits holds, if that worker lives. Answers
-- whether anything has changed.
local function settle_crons(best)
  local before, has_changed = {}, false
  local all = redis.call('HGETALL', crons)
  for i = 1, #all, 2 do
    before[all[i]] = all[i + 1]
  end
  for scope, worker in pairs(best) do
    local task = string.match(scope, '^t:(.*)$')
    local word = task and worker.is_alive == 1 and worker.words['s:' .. task]
    if word then
      if before[task] ~= word then
        redis.call('HSET', crons, task, word)
        has_changed = true
      end
      before[task] = nil
    end
  end
  for task in pairs(before) do
    redis.call('HDEL', crons, task)
    has_changed = true
  end
  return has_changed
end

-- Works out what holds: of each task or queue the youngest living worker's word, also that there is no limit. One that
-- was found silent is asked only where nobody else lives: it may have been cut off, and still be the one that runs.
local function settle()
  local words = redis.call('HGETALL', declared)
  local best, holds = {}, {}
  for i = 1, #words, 2 do
    local text = redis.call('HGET', workers, words[i])
    local worker = text and read_worker(text)
    if worker then
      worker.words = cjson.decode(words[i + 1])
      for scope, word in pairs(worker.words) do
        local known = best[scope]
        local is_younger = string.sub(scope, 1, 2) ~= 's:' and (not known or worker.is_alive > known.is_alive
          or worker.is_alive == known.is_alive and worker.born > known.born)
        if is_younger then
          best[scope] = worker
          holds[scope] = word
        end
      end
    end
  end
  local has_changed, before = settle_crons(best), {}
  local all = redis.call('HGETALL', limits)
  for i = 1, #all, 2 do
    before[all[i]] = all[i + 1]
  end
  -- A row is `declared` cap|rates|max_pending, then `set` cap|rates|max_pending, then whether it is paused.
  for scope, text in pairs(before) do
    if not holds[scope] then holds[scope] = '||' end
  end
  for scope, word in pairs(holds) do
    local set = before[scope] and string.match(before[scope], '^[^;]*;(.*)$') or '||;0'
    local row = word .. ';' .. set
    if row == '||;||;0' then
      if before[scope] then
        redis.call('HDEL', limits, scope)
        has_changed = true
      end
    elseif row ~= before[scope] then
      redis.call('HSET', limits, scope, row)
      has_changed = true
    end
  end
  if has_changed then redis.call('HINCRBY', meta, 'limits_version', 1) end
end

-- Lets the declarations of workers lapse that have not beaten for a lease; answers when the next falls silent, as text.
local function notice_deaths()
  local all, soonest, silent = redis.call('HGETALL', workers), nil, {}
  for i = 1, #all, 2 do
    local worker = read_worker(all[i + 1])
    if worker.is_alive == 1 then
      if worker.silent_at <= now then
        silent[#silent + 1] = { all[i], worker }
      else
        soonest = math.min(soonest or worker.silent_at, worker.silent_at)
      end
    end
  end
  if #silent > 0 then
    if may_reap() then
      for _, pair in ipairs(silent) do
        pair[2].is_alive = 0
        write_worker(pair[1], pair[2])
      end
      settle()
    else
      -- After an outage nobody could beat: the living beat first.
      local _, _, _, reap_after = guard_of()
      soonest = math.min(soonest or reap_after, reap_after)
    end
  end
  return soonest and string.format('%.0f', soonest) or ''
end

local function limits_version()
  return tonumber(redis.call('HGET', meta, 'limits_version') or 0)
end

local function forget_worker(id)
  redis.call('HDEL', workers, id)
  redis.call('HDEL', declared, id)
  redis.call('HDEL', reports, id)
end
