-- The guard of the reaper: if nobody has beaten for too long, or in the future, the living renew first.
local LEASE_MS = 10000

local function guard_of()
  local kept = redis.call('HMGET', meta, 'beat_at', 'quiet_ms', 'lease_ms', 'reap_after')
  local lease = tonumber(kept[3] or LEASE_MS)
  return tonumber(kept[1] or -1), tonumber(kept[2] or lease * 2 / 5), lease, tonumber(kept[4] or 0)
end

-- Whether leases that have run out may be taken back now.
local function may_reap()
  local beat_at, quiet, lease, reap_after = guard_of()
  -- Where nobody has ever beaten, nobody holds a lease.
  if beat_at < 0 then return true end
  if beat_at > now or now - beat_at > quiet then
    -- From here on it is known that somebody looks: what follows is no silence.
    redis.call('HSET', meta, 'beat_at', string.format('%.0f', now), 'reap_after', string.format('%.0f', now + lease))
    return false
  end
  return now >= reap_after
end

-- Says that a worker lives, after looking whether that is news.
local function beat(lease, every)
  may_reap()
  -- A silence that the beats themselves make is none: not below one beat and a quarter.
  local quiet = math.max(lease - every * 2, every + math.floor(every / 4))
  redis.call('HSET', meta, 'beat_at', string.format('%.0f', now), 'quiet_ms', quiet, 'lease_ms', lease)
end
