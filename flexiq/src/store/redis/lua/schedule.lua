-- schedule: sets, takes back, pauses or resumes a schedule.
-- ARGV  4 'set', 'removed', 'paused' or 'resumed', 5 its name; of one that is set, 6 whether it catches up and its cron, 7 what
--       it enqueues, 8 how many there may be
-- Returns 'new' for one that is set in a queue that is not known yet, 'many' if there are as many as there may be, or 'done'
local what, name, of = ARGV[4], ARGV[5], of_schedules()
local stand = of.find(name)
if what == 'set' then
  if redis.call('HEXISTS', meta, 'is_known') == 0 then return 'new' end
  if not stand and redis.call('HLEN', KEYS[37]) >= tonumber(ARGV[8]) then return 'many' end
  of.put(name, ARGV[6], ARGV[7], 1)
elseif stand and what == 'removed' then
  if stand.set == 1 or stand.asleep > 0 then of.forget(name) end
elseif stand and what == 'paused' and stand.paused == 0 then
  stand.paused = 1
  of.keep(name, stand)
elseif stand and what == 'resumed' and stand.paused == 1 then
  -- What it has passed over is not made up for.
  stand.paused, stand.planned, stand.seen = 0, 0, now
  of.keep(name, stand)
end
tell_keeper()
return 'done'
