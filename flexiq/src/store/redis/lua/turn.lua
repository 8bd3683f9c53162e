-- turn: a worker's finishes and its next claim, in one step that may be sent again.
-- ARGV  4 worker, 5 number, 6 whether silent workers were settled, 7 number of finishes, 8 index of the claim, 9 number of
--       groups of successes without a value, 10 number of other finishes; then of each group: run, time to keep and
--       number of jobs, and then their ids; then two of each other finish: lease, transition and notes, and its value or error;
--       then, if it claims, lease, number of slots, free slots of each, and two of each room: task; and slot, most and
--       max_losses
-- Returns 'settle' if a silent worker's declarations must lapse first, or 'done', a character for each finish, whether
-- there is more, the counters of what is claimed, each behind how many jobs it is for, the schedules that are due, as one list,
-- and two of each job: id and body.
local worker, number = ARGV[4], tonumber(ARGV[5])
local claim_at = tonumber(ARGV[8])
local has_claim = #ARGV >= claim_at

-- The answer of the turn that is kept; an older number learns nothing, for its answer was taken long ago.
local function answer_again(kept)
  local kept_number, kept_more, finishes, jobs, at = struct.unpack('>I6BI4I4', kept)
  if number < kept_number then return { 'done', string.rep('l', tonumber(ARGV[7])), 0, '', {} } end
  local life, again, told = of_life(), {}, string.sub(kept, at, at + finishes - 1)
  local id_at = at + finishes
  local counters_at, same, run = id_at + 16 * jobs, 0, nil
  for _ = 1, jobs do
    if same == 0 then
      same, run = struct.unpack('>I2I4', kept, counters_at)
      counters_at = counters_at + 31
    end
    same = same - 1
    local id = string.sub(kept, id_at, id_at + 15)
    id_at = id_at + 16
    local text = redis.call('HGET', runs, id)
    local job = text and life.read_run(text)
    -- A lease that was lost meanwhile is not handed out again.
    if job and job.state == RUNNING and job.worker == worker and job.run == run then
      -- Which gates it went through is not kept: to be safe, a cap counts it.
      counters[#counters + 1] = struct.pack('>I2', 1) .. counters_of(job, 1)
      again[#again + 1] = id
      again[#again + 1] = redis.call('HGET', bodies, id)
    end
  end
  return { 'done', told, kept_more, table.concat(counters), {}, unpack(again) }
end

local kept = redis.call('HGET', turns, worker)
if kept and number <= struct.unpack('>I6', kept) then return answer_again(kept) end
local silent_at, alarm_taken, arrivals, tick_at =
  unpack(redis.call('HMGET', meta, 'silent_at', 'alarm_taken', 'arrivals', 'tick_at'))
if has_claim and ARGV[6] == '0' and silent_at and tonumber(silent_at) <= now then return { 'settle' } end

local ticks = {}
if ARGV[7] ~= '0' then finish(worker, 9) end
if has_claim then
  claim(worker, claim_at)
  if tick_at and tonumber(tick_at) <= now then ticks = of_schedules().tell_due() end
  if alarm_taken then redis.call('HDEL', meta, 'alarm_taken') end
else
  ring_for_moves()
end
tell_ends()
if arrivals then of_room().tell() end
tell_keeper()

local told, heads = table.concat(answers), table.concat(counters)
-- A turn that did nothing may as well be done again. Of what was due somebody is told anew.
if #told > 0 or #claimed > 0 then
  local kept_now = struct.pack('>I6BI4I4', number, more, #told, #claimed) .. told .. table.concat(claimed) .. heads
  redis.call('HSET', turns, worker, kept_now)
end
return { 'done', told, more, heads, ticks, unpack(answer) }
