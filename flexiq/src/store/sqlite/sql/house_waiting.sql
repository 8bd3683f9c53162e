SELECT min(lanes.lane), queues.name, lanes.task
FROM flexiq_lanes AS lanes INDEXED BY flexiq_lanes_waiting
JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
WHERE lanes.ready > 0
GROUP BY lanes.queue, lanes.task
