SELECT
    partitioned.queue, queues.name, partitioned.task, '',
    partitioned.ready, partitioned.running, partitioned.startable,
    coalesce(lanes.ready, 0), coalesce(lanes.running, 0), coalesce(lanes.startable, 0)
FROM flexiq_partitioned AS partitioned
LEFT JOIN flexiq_queues AS queues ON queues.queue = partitioned.queue
LEFT JOIN (
    SELECT queue, task, sum(ready) AS ready, sum(running) AS running, sum(startable) AS startable
    FROM flexiq_lanes
    WHERE partition <> ''
    GROUP BY queue, task
) AS lanes ON lanes.queue = partitioned.queue AND lanes.task = partitioned.task
WHERE (partitioned.ready, partitioned.running, partitioned.startable)
    <> (coalesce(lanes.ready, 0), coalesce(lanes.running, 0), coalesce(lanes.startable, 0))
LIMIT ?1
