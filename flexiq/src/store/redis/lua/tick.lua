-- tick: advances a schedule that was due, and enqueues its job by `store_batches`, which is enqueue.lua.
-- ARGV  4 name of the schedule, 5 whether what was told was planned, and the moment, 6 cron, 7 the tick that comes next, 8 id of
--       the job ('' for none), 9 max_pending of the queue ('' for none)
-- Returns 'late' if it shows something else, 'skipped' if there was no room for the job, or 'done'
local name, of = ARGV[4], of_schedules()
local planned, seen = struct.unpack('>BI6', ARGV[5])
local stand = of.find(name)
if not stand or stand.paused == 1 or stand.asleep > 0 then return 'late' end
if stand.planned ~= planned or stand.seen ~= seen or stand.cron ~= ARGV[6] then return 'late' end
local is_skipped = false
if planned == 1 and ARGV[8] ~= '' then
  local head, body = struct.unpack('>I4c0I4c0', redis.call('HGET', KEYS[38], name))
  -- One batch of one job, of one producer that does not wait, and without a unique key.
  local answer = store_batches({ '', '', '', '0', '1', ARGV[8], '1', ARGV[9], '', '1', head, body, '0' })
  is_skipped = answer[2] == 'full' or answer[2] == 'crowded'
  if is_skipped then stand.skipped = seen else stand.last = seen end
end
stand.planned, stand.seen = 1, tonumber(ARGV[7])
of.keep(name, stand)
tell_keeper()
return is_skipped and 'skipped' or 'done'
