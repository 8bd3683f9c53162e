-- What each task has without a partition, and in all of its partitions: no row of either stands for a job or a partition.
SELECT
    queues.name, counted.task,
    sum(counted.scheduled), sum(counted.ready), sum(counted.running),
    sum(counted.succeeded), sum(counted.dead), sum(counted.cancelled), sum(counted.expired)
FROM (
    SELECT queue, task, scheduled, ready, running, succeeded, dead, cancelled, expired
    FROM flexiq_lanes INDEXED BY flexiq_lanes_plain
    WHERE partition = ''
    UNION ALL
    SELECT queue, task, scheduled, ready, running, succeeded, dead, cancelled, expired
    FROM flexiq_partitioned
) AS counted
JOIN flexiq_queues AS queues ON queues.queue = counted.queue
GROUP BY counted.queue, counted.task
ORDER BY queues.name, counted.task
