-- One waiting lane of each task that a queue or task's limits hold back.
SELECT min(lanes.lane)
FROM flexiq_lanes AS lanes INDEXED BY flexiq_lanes_waiting
JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
WHERE lanes.ready > 0
  AND CASE ?1 WHEN 0 THEN queues.name ELSE lanes.task END = ?2
GROUP BY lanes.queue, lanes.task
