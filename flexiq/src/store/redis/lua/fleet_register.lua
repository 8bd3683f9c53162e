-- fleet_register: makes a worker and what its tasks declare known.
-- ARGV  2 worker, 3 lease, 4 every, 5 its label, 6 its word on limits in JSON, 7 number of queues, then their names, then two
--       of each task: name, and queue and declaration as one text
-- Returns the version of the limits
local id, lease = ARGV[2], tonumber(ARGV[3])
beat(lease, tonumber(ARGV[4]))
local text = redis.call('HGET', workers, id)
local worker = text and read_worker(text) or { born = redis.call('HINCRBY', meta, 'born', 1), since = now }
worker.beat_at, worker.silent_at, worker.is_alive, worker.label = now, now + lease, 1, ARGV[5]
write_worker(id, worker)
redis.call('HSET', declared, id, ARGV[6])
local first_task = 8 + tonumber(ARGV[7])
for i = 8, first_task - 1 do
  redis.call('SADD', queues, ARGV[i])
end
for i = first_task, #ARGV, 2 do
  redis.call('HSET', tasks, ARGV[i], ARGV[i + 1])
end
settle()
return limits_version()
