-- The lane of a task without a partition, and its ready jobs; those in partitions, and how much of them may start.
SELECT
    plain.lane, coalesce(plain.ready, 0),
    coalesce(partitioned.ready, 0), coalesce(partitioned.startable, 0)
FROM (SELECT 1)
LEFT JOIN flexiq_lanes AS plain ON plain.queue = ?1 AND plain.task = ?2 AND plain.partition = ''
LEFT JOIN flexiq_partitioned AS partitioned ON partitioned.queue = ?1 AND partitioned.task = ?2
