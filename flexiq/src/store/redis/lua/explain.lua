-- explain: all that this queue knows of what keeps a job waiting. It only reads, and no more than its bounds.
-- ARGV  4 id, 5 bytes of a body that hold its head, 6 leases among which the holders of a cap are looked for
-- Returns nothing if the job is not there; else now, its run, the head of its body, and how far its newest run is. Of one
-- that is ready, also how many stand before it in its lane and how many of these have a higher priority; then what shuts
-- the gates of its queue, its task and its partition, as lib/shut.lua tells it
local id, most, jobs = ARGV[4], tonumber(ARGV[6]), of_life()
local job = jobs.find_job(id)
if not job then return {} end
local answer = { now_text, jobs.write_run(job), string.sub(redis.call('HGET', bodies, id), 1, tonumber(ARGV[5])) }
answer[4] = job.error == '' and '' or of_story().progress_of(id)
if job.state ~= READY then return answer end

local from = '[' .. job.lane .. '\0'
answer[5] = redis.call('ZLEXCOUNT', lanes, from, '(' .. place(job.lane, job.rank, job.due, id))
answer[6] = redis.call('ZLEXCOUNT', lanes, from, '(' .. place(job.lane, job.rank, 0, ''))

for _, name in ipairs({ '', job.task }) do
  add_shut(answer, read_gate(name, redis.call('HGET', limits, name)), most)
end
if job.lane ~= job.task then
  local _, gates = of_partitions().read_all({ job.lane })
  add_shut(answer, gates[1], most)
else
  add_shut(answer, nil, most)
end
return answer
