-- call: makes jobs that wait for a named limit due at a moment; those whose run has not ended yet, when it has.
-- One that is due at once goes back to its old place, so that it comes before what was ready later.
-- ARGV  from 4: job, moment and old place of each
-- Returns a character for each: 'c' for one that comes, 'g' for one that never does: it has ended or waits for something
-- else
local LIMIT = 3
local ids, dues, places, told = {}, {}, {}, {}
for i = 4, #ARGV do
  ids[#ids + 1], dues[#dues + 1], places[#places + 1] = struct.unpack('>c16I6I6', ARGV[i])
end
local texts, jobs = read_fields(runs, ids), of_life()
for i, id in ipairs(ids) do
  local job = texts[i] and jobs.read_run(texts[i])
  told[i] = 'c'
  if job and job.state == SCHEDULED and job.reason == LIMIT then
    local is_ready = dues[i] <= now
    job.due = is_ready and math.min(places[i], now) or dues[i]
    jobs.make_pending(id, job, is_ready and READY or SCHEDULED)
  elseif job and job.state == RUNNING then
    redis.call('ZADD', early, text_of(dues[i]), id)
  elseif not job or job.state ~= READY then
    told[i] = 'g'
  end
end
write_moves()
ring_for_moves()
tell_keeper()
return table.concat(told)
