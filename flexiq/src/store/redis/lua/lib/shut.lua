-- What shuts a gate, as people are told it, and who holds it: of so many leases of the queue.
-- Seven texts of each gate: whether it is paused, until when it is held, the cap if it is full, how many run, its holders,
-- the rates if they are spent, and when time opens them. What does not keep anything waiting is ''.
local running_read

-- The running jobs that are looked at, each its lane, its task, its start, and id, worker and start as they are answered.
local function running_jobs(most)
  if running_read then return running_read end
  local ids, jobs = redis.call('ZRANGE', leases, '0', text_of(most - 1)), of_life()
  running_read = {}
  for i, text in ipairs(read_fields(runs, ids)) do
    -- The last lease is none of a job.
    local run = text and jobs.read_run(text)
    if run then
      running_read[#running_read + 1] = {
        lane = run.lane, task = run.task, started = run.started,
        packed = ids[i] .. run.worker .. struct.pack('>I6', run.started),
      }
    end
  end
  return running_read
end

local function holders_of(name, most)
  local holders = {}
  for _, run in ipairs(running_jobs(most)) do
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

local function add_shut(answer, gate, most)
  local paused, held, cap, leased_jobs, holders, rates, opens_at = '', '', '', '0', '', '', ''
  if gate then
    if gate.is_paused then paused = '1' end
    if gate.held_until and gate.held_until > now then held = text_of(gate.held_until) end
    if gate.cap and running_of(gate) >= gate.cap then
      cap, leased_jobs, holders = text_of(gate.cap), text_of(running_of(gate)), holders_of(gate.name, most)
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
