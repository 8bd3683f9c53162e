-- turn: a worker's finishes and its next claim, in one step that may be sent again.
-- ARGV  4 worker, 5 number, 6 whether silent workers were settled, 7 number of finishes, then two of each finish: lease
--       and transition, and its value or error; then, if it claims, lease, number of slots, free slots of each, and four
--       of each room: task, slot, most, max_losses
-- Returns 'settle' if a silent worker's declarations must lapse first, or 'done', a character for each finish, whether
-- there is more, and two of each claimed job: its lease and counters, and its body.
local worker, number = ARGV[4], tonumber(ARGV[5])
local finishes = tonumber(ARGV[7])
local claim_at = 8 + 2 * finishes
local has_claim = #ARGV >= claim_at

-- The answer of the turn that is kept; an older number learns nothing, for its answer was taken long ago.
local function answer_again(kept)
  local kept_number, more, answered, at = struct.unpack('>I6BI4', kept)
  if number < kept_number then return { 'done', string.rep('l', finishes), 0 } end
  local answer = { 'done', string.sub(kept, at, at + answered - 1), more }
  for lease = at + answered, #kept, 20 do
    local id, run = struct.unpack('>c16I4', kept, lease)
    local text = redis.call('HGET', runs, id)
    local job = text and read_run(text)
    -- A lease that was lost meanwhile is not handed out again.
    if job and job.state == RUNNING and job.worker == worker and job.run == run then
      -- Which gates it went through is not kept: to be safe, a cap counts it.
      answer[#answer + 1] = claimed_head(id, job, 1)
      answer[#answer + 1] = redis.call('HGET', bodies, id)
    end
  end
  return answer
end

local kept = redis.call('HGET', turns, worker)
if kept and number <= struct.unpack('>I6', kept) then return answer_again(kept) end
local silent_at = redis.call('HGET', meta, 'silent_at')
if has_claim and ARGV[6] == '0' and silent_at and tonumber(silent_at) <= now then return { 'settle' } end

local answers = ''
if finishes > 0 then answers = finish(worker, finishes) end
if has_claim then
  claim(worker, claim_at)
  redis.call('HDEL', meta, 'alarm_taken')
else
  ring_for_moves()
end
tell_ends()
tell_keeper()

-- A turn that did nothing may as well be done again.
if finishes > 0 or #claimed > 0 then
  local kept_now = struct.pack('>I6BI4', number, more, #answers) .. answers .. table.concat(claimed)
  redis.call('HSET', turns, worker, kept_now)
end
return { 'done', answers, more, unpack(answer) }
