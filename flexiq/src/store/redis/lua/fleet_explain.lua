-- fleet_explain: who lives, where none of them both links a task and serves a queue. It only reads.
-- ARGV  2 task, 3 queue, 4 workers that are named at most
-- Returns nothing if one does both; else how many live, then four of each that is named: its id, its label, and whether it
-- links the task and whether it serves the queue
-- What a worker declares is JSON, and no name has a quote in it.
local links, serves = '"t:' .. ARGV[2] .. '":', '"q:' .. ARGV[3] .. '":'
local alive, all = {}, redis.call('HGETALL', workers)
for i = 1, #all, 2 do
  local worker = read_worker(all[i + 1])
  if worker.is_alive == 1 and worker.silent_at > now then
    local word = redis.call('HGET', declared, all[i]) or ''
    worker.id = all[i]
    worker.links = string.find(word, links, 1, true) ~= nil
    worker.serves = string.find(word, serves, 1, true) ~= nil
    if worker.links and worker.serves then return {} end
    alive[#alive + 1] = worker
  end
end
table.sort(alive, function(a, b)
  local a_does, b_does = a.links or a.serves, b.links or b.serves
  if a_does ~= b_does then return a_does end
  return a.born > b.born
end)
local answer = { #alive }
for i = 1, math.min(#alive, tonumber(ARGV[4])) do
  local worker = alive[i]
  for _, part in ipairs({ worker.id, worker.label, worker.links and 1 or 0, worker.serves and 1 or 0 }) do
    answer[#answer + 1] = part
  end
end
return answer
