SELECT
    queues.name, lanes.task,
    sum(lanes.scheduled), sum(lanes.ready), sum(lanes.running),
    sum(lanes.succeeded), sum(lanes.dead), sum(lanes.cancelled), sum(lanes.expired)
FROM flexiq_lanes AS lanes
JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
GROUP BY lanes.queue, lanes.task
ORDER BY queues.name, lanes.task
