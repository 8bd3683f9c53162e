-- Whether something of a task is ready: without a partition; in partitions; in partitions whose gates are open, or may be;
-- and when time opens the first of the others.
SELECT
    EXISTS (
        SELECT 1
        FROM flexiq_lanes INDEXED BY flexiq_lanes_waiting
        WHERE queue = ?1 AND task = ?2 AND ready > 0 AND partition = ''
    ),
    coalesce(partitioned.ready > 0, 0),
    coalesce(partitioned.startable > 0 OR partitioned.reopens IS NOT NULL, 0)
FROM (SELECT 1)
LEFT JOIN flexiq_partitioned AS partitioned ON partitioned.queue = ?1 AND partitioned.task = ?2
