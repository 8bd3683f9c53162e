-- The tasks of which something waits that has no partition, each with the limits of its task: those come from one row of flexiq_limits, whatever
-- they were declared or set by.
SELECT
    lanes.lane, lanes.task, lanes.ready,
    coalesce(limits.set_max_concurrent, limits.declared_max_concurrent),
    coalesce(limits.set_rates, limits.declared_rates),
    coalesce(limits.is_paused, 0)
FROM flexiq_lanes AS lanes INDEXED BY flexiq_lanes_waiting
LEFT JOIN flexiq_limits AS limits ON limits.scope = 1 AND limits.name = lanes.task
WHERE lanes.queue = ?1
  AND lanes.ready > 0
  AND lanes.partition = ''
ORDER BY lanes.task
