-- fleet_register: makes a worker and what its tasks declare known.
-- ARGV  2 worker, 3 lease, 4 every, 5 its label, 6 its word on limits in JSON, 7 number of queues, then their names, then two
--       of each task: name, and queue and declaration as one text
-- Returns the version of the limits
local id, lease = ARGV[2], tonumber(ARGV[3])
beat(lease, tonumber(ARGV[4]))
local text = redis.call('HGET', workers, id)
local born = text and read_worker(text).born or redis.call('HINCRBY', meta, 'born', 1)
write_worker(id, { born = born, beat_at = now, silent_at = now + lease, is_alive = 1, label = ARGV[5] })
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
