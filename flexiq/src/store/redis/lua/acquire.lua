-- acquire: takes a permit of a named limit for a run, or puts its job into the line.
-- ARGV  2 what it asks, as limit.lua reads it; 3 how long a permit lasts without a beat
-- Returns 'granted' or the time at which the job is due; whether the job stood in line before, and may have been called while
-- it ran; and jobs to be called
local ask, length = read_ask(ARGV[2]), tonumber(ARGV[3])
local gate, id = ask.gate, ask.id
if redis.call('ZSCORE', permits, ask.permit) then
  -- The answer may have been lost: it lasts from this one.
  redis.call('ZADD', permits, text_of(math.min(now + length, FAR)), ask.permit)
  return { 'granted', 0, calls }
end
free_lapsed()
local entry = read_entry(gate, id)
local is_called = entry and redis.call('ZSCORE', reserved, gate .. id)
local stood = entry and 1 or 0
local is_granted
if is_called then
  -- Its permit is reserved: only a hold has come since, or other numbers.
  unreserve(gate, entry)
  asks(entry, ask)
  is_granted = opening_beside(gate, entry, 0, 0)
else
  if entry then
    asks(entry, ask)
    write_entry(gate, entry)
  else
    entry = enter(ask, end_of(gate))
  end
  is_granted = advance(gate, id)
end
if is_granted then
  leave(gate, entry)
  log_start(gate, ask.rates)
  redis.call('ZADD', permits, text_of(math.min(now + length, FAR)), ask.permit)
  use(gate, 1, 0, 0)
  -- Whoever holds a permit lives: the guard counts silence from here.
  redis.call('HSETNX', meta, 'beat_at', now_text)
  advance(gate)
  return { 'granted', stood, calls }
end
if is_called then redis.call('ZADD', line, 0, member_of(gate, WAITS, entry)) end
local first, opens = first_of(gate), nil
if first.id == id then
  local _, at = opening(gate, entry)
  opens = at
  opens_at(gate, opens)
end
entry.due = math.min(opens or now + fallback(math.abs(entry.place - first.place), entry), FAR)
write_entry(gate, entry)
return { text_of(entry.due), stood, calls }
