-- read: what people are shown of jobs: their runs, and the heads of their bodies.
-- ARGV  4 bytes of a body that hold its head, then ids
-- Returns for each job that is there: id, run, the head of its body, and how far its newest run is
local answer, jobs = {}, of_life()
for i = 5, #ARGV do
  local id = ARGV[i]
  local job = jobs.find_job(id)
  if job then
    answer[#answer + 1] = id
    answer[#answer + 1] = jobs.write_run(job)
    answer[#answer + 1] = string.sub(redis.call('HGET', bodies, id), 1, tonumber(ARGV[4]))
    answer[#answer + 1] = job.error == '' and '' or of_story().progress_of(id)
  end
end
return answer
