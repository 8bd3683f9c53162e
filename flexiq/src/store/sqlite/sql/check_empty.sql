SELECT lanes.lane, queues.name, lanes.task, lanes.partition
FROM flexiq_lanes AS lanes
LEFT JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
WHERE lanes.partition <> ''
  AND lanes.scheduled + lanes.ready + lanes.running + lanes.succeeded + lanes.dead + lanes.cancelled + lanes.expired = 0
LIMIT ?1
