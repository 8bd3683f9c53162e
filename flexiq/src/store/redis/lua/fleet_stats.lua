-- fleet_stats: who lives, what each declares and does, and what holds. It only reads.
-- Returns now; six of each that lives, the oldest first: id, label, since when, when it was last heard of, its word on limits
-- in JSON, and its report ('' for none); task and queue of each known task; scope and row of all that is
-- limited; and moment and text of two samples, the newest last
local alive, all = {}, redis.call('HGETALL', workers)
for i = 1, #all, 2 do
  local worker = read_worker(all[i + 1])
  if worker.is_alive == 1 and worker.silent_at > now then
    worker.id = all[i]
    alive[#alive + 1] = worker
  end
end
table.sort(alive, function(a, b)
  return a.born < b.born
end)
local told, homes = {}, {}
for _, worker in ipairs(alive) do
  local word = redis.call('HGET', declared, worker.id) or '{}'
  local report = redis.call('HGET', reports, worker.id) or ''
  for _, part in ipairs({ worker.id, worker.label, text_of(worker.since), text_of(worker.beat_at), word, report }) do
    told[#told + 1] = part
  end
end
local known = redis.call('HGETALL', tasks)
for i = 1, #known, 2 do
  homes[i], homes[i + 1] = known[i], string.match(known[i + 1], '^[^\n]*')
end
local kept = redis.call('HMGET', samples, 'before_at', 'before', 'newest_at', 'newest')
return { now_text, told, homes, redis.call('HGETALL', limits), kept }
