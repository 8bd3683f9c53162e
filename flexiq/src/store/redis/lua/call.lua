-- call: makes jobs that wait for a named limit due at a moment; those whose run has not ended yet, when it has.
-- One that is due at once goes back to its old place, so that it comes before what was ready later.
-- ARGV  from 4: job, moment and old place of each. Without a moment (0) it is called again, for the first call may be lost:
--       nothing is done for a run that has not ended yet
-- Returns a character for each: 'c' for one that comes, 'g' for one that never does: it has ended or waits for something
-- else
local LIMIT = 3
local ids, dues, places, at, told = {}, {}, {}, {}, {}
for i = 4, #ARGV do
  local id, due, place_before = struct.unpack('>c16I6I6', ARGV[i])
  -- One that two lines call at once comes when the first of them says.
  if not at[id] then
    ids[#ids + 1], at[id], dues[id], places[id] = id, #ids + 1, due, place_before
  else
    dues[id] = math.min(dues[id], due)
  end
end
local texts, jobs = read_fields(runs, ids), of_life()
local comes = {}
for i, id in ipairs(ids) do
  local job = texts[i] and jobs.read_run(texts[i])
  comes[id] = 'c'
  if job and job.state == SCHEDULED and job.reason == LIMIT then
    local is_ready = dues[id] <= now
    job.due = is_ready and math.min(places[id], now) or dues[id]
    jobs.make_pending(id, job, is_ready and READY or SCHEDULED)
  elseif job and job.state == RUNNING then
    if dues[id] > 0 then redis.call('ZADD', early, text_of(dues[id]), id) end
  elseif not job or job.state ~= READY then
    comes[id] = 'g'
  end
end
for i = 4, #ARGV do
  told[#told + 1] = comes[string.sub(ARGV[i], 1, 16)]
end
write_moves()
ring_for_moves()
tell_keeper()
return table.concat(told)
