-- give_back: gives permits back, and takes jobs out of the line that never come.
-- ARGV  2 number of permits, then what each was asked with; then `gate id` of each job that does not come
-- Returns jobs to be called
local given, touched = tonumber(ARGV[2]), {}
for i = 3, 2 + given do
  local ask = read_ask(ARGV[i])
  local was_held = end_permit(ask.permit)
  -- What is held takes effect before anyone is called.
  if ask.hold > 0 then
    local held_until = math.min(now + ask.hold, FAR)
    local before = tonumber(redis.call('ZSCORE', holds, ask.gate) or 0)
    redis.call('ZADD', holds, text_of(math.max(held_until, before)), ask.gate)
    -- Its job comes when the hold is over: whoever is first is told so.
    local entry = read_entry(ask.gate, ask.id)
    if entry then leave(ask.gate, entry) end
    enter(ask, start_of(ask.gate))
  end
  if was_held or ask.hold > 0 then touched[ask.gate] = true end
end
if given > 0 then free_lapsed() end
for gate in pairs(touched) do
  advance(gate)
end
for i = 3 + given, #ARGV do
  local gate, id = gate_of(ARGV[i]), string.sub(ARGV[i], -16)
  local entry = read_entry(gate, id)
  if entry then
    leave(gate, entry)
    advance(gate)
  end
end
return calls
