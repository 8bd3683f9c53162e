-- explain: all that this queue knows of what keeps a job waiting. It only reads, and no more than its bounds.
-- ARGV  4 id, 5 bytes of a body that hold its head, 6 leases among which the holders of a cap are looked for
-- Returns nothing if the job is not there; else now, its run, and the head of its body. Of one that is ready, also how many
-- stand before it in its lane and how many of these have a higher priority; then seven of the gates of its queue, its task
-- and its partition each: whether it is paused, until when it is held, the cap if it is full, how many run, its holders, the
-- rates if they are spent, and when time opens them. What does not keep it waiting is ''
local id, jobs = ARGV[4], of_life()
local job = jobs.find_job(id)
if not job then return {} end
local answer = { now_text, jobs.write_run(job), string.sub(redis.call('HGET', bodies, id), 1, tonumber(ARGV[5])) }
if job.state ~= READY then return answer end

local from = '[' .. job.lane .. '\0'
answer[4] = redis.call('ZLEXCOUNT', lanes, from, '(' .. place(job.lane, job.rank, job.due, id))
answer[5] = redis.call('ZLEXCOUNT', lanes, from, '(' .. place(job.lane, job.rank, 0, ''))

-- The running jobs that are looked at, each its lane, its task, and id, worker and start as they are answered.
local function read_running()
  local ids, running = redis.call('ZRANGE', leases, '0', text_of(tonumber(ARGV[6]) - 1)), {}
  for i, text in ipairs(read_fields(runs, ids)) do
    -- The last lease is none of a job.
    local run = text and jobs.read_run(text)
    if run then
      local packed = ids[i] .. run.worker .. struct.pack('>I6', run.started)
      running[#running + 1] = { lane = run.lane, task = run.task, packed = packed }
    end
  end
  return running
end

local running
local function holders_of(name)
  running = running or read_running()
  local holders = {}
  for _, run in ipairs(running) do
    if name == '' or name == run.task or name == run.lane then holders[#holders + 1] = run.packed end
  end
  return table.concat(holders)
end

local function write_rates(gate)
  local written = {}
  for i, rate in ipairs(gate.rates) do
    written[i] = rate.text .. (rate.spread and ' spread' or '')
  end
  return table.concat(written, ',')
end

local function add_gate(gate)
  local paused, held, cap, leased_jobs, holders, rates, opens_at = '', '', '', '0', '', '', ''
  if gate then
    if gate.is_paused then paused = '1' end
    if gate.held_until and gate.held_until > now then held = text_of(gate.held_until) end
    if gate.cap and running_of(gate) >= gate.cap then
      cap, leased_jobs, holders = text_of(gate.cap), text_of(running_of(gate)), holders_of(gate.name)
    end
    if #gate.rates > 0 then
      local admitted, opens = of_rates().admit(gate, 1)
      if admitted == 0 then rates, opens_at = write_rates(gate), text_of(opens) end
    end
  end
  for _, part in ipairs({ paused, held, cap, leased_jobs, holders, rates, opens_at }) do
    answer[#answer + 1] = part
  end
end

for _, name in ipairs({ '', job.task }) do
  add_gate(read_gate(name, redis.call('HGET', limits, name)))
end
if job.lane ~= job.task then
  local _, gates = of_partitions().read_all({ job.lane })
  add_gate(gates[1])
else
  add_gate(nil)
end
return answer
