SELECT lanes.queue, queues.name, lanes.task, lanes.partition
FROM flexiq_lanes AS lanes
JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
WHERE lanes.lane = ?1
