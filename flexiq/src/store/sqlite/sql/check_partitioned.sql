SELECT
    partitioned.queue, queues.name, partitioned.task, '',
    partitioned.scheduled, partitioned.ready, partitioned.running, partitioned.succeeded, partitioned.dead,
    partitioned.cancelled, partitioned.expired, partitioned.startable,
    coalesce(lanes.scheduled, 0), coalesce(lanes.ready, 0), coalesce(lanes.running, 0), coalesce(lanes.succeeded, 0),
    coalesce(lanes.dead, 0), coalesce(lanes.cancelled, 0), coalesce(lanes.expired, 0), coalesce(lanes.startable, 0)
FROM flexiq_partitioned AS partitioned
LEFT JOIN flexiq_queues AS queues ON queues.queue = partitioned.queue
LEFT JOIN (
    SELECT
        queue, task,
        sum(scheduled) AS scheduled, sum(ready) AS ready, sum(running) AS running, sum(succeeded) AS succeeded,
        sum(dead) AS dead, sum(cancelled) AS cancelled, sum(expired) AS expired, sum(startable) AS startable
    FROM flexiq_lanes
    WHERE partition <> ''
    GROUP BY queue, task
) AS lanes ON lanes.queue = partitioned.queue AND lanes.task = partitioned.task
WHERE (
        partitioned.scheduled, partitioned.ready, partitioned.running, partitioned.succeeded, partitioned.dead,
        partitioned.cancelled, partitioned.expired, partitioned.startable
    ) <> (
        coalesce(lanes.scheduled, 0), coalesce(lanes.ready, 0), coalesce(lanes.running, 0),
        coalesce(lanes.succeeded, 0), coalesce(lanes.dead, 0), coalesce(lanes.cancelled, 0),
        coalesce(lanes.expired, 0), coalesce(lanes.startable, 0)
    )
LIMIT ?1
