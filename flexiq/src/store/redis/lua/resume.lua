-- resume: ends the hold of a gate, and has those rung for that may start now.
-- ARGV  4 the gate: a task, a lane of a partition, or '' for the queue
local name = ARGV[4]
if redis.call('ZREM', holds, name) == 0 then return end
of_holds().show(name, nil)
if has_partitions then of_partitions().settle() end
local resumed = task_of(name)
for _, task in ipairs(waiting_tasks()) do
  if resumed == '' or resumed == task then
    redis.call('ZREM', openings, task)
    set_right(task)
  end
end
tell_keeper()
