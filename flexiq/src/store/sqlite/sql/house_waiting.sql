-- Every task of which something waits.
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
