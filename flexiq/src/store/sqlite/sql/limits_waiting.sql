-- The tasks of which something waits and which a queue or task's limits hold back.
SELECT queues.name, waiting.task
FROM (
    SELECT queue, task
    FROM flexiq_lanes INDEXED BY flexiq_lanes_waiting
    WHERE ready > 0 AND partition = ''
    UNION
    SELECT queue, task
    FROM flexiq_partitioned INDEXED BY flexiq_partitioned_waiting
    WHERE ready > 0
) AS waiting
JOIN flexiq_queues AS queues ON queues.queue = waiting.queue
WHERE CASE ?1 WHEN 0 THEN queues.name ELSE waiting.task END = ?2
