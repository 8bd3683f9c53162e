-- Partitions that are wrong, and those that are taken for shut with nothing that would open them: the gate of these must be
-- asked. Those behind the cursor of their task are still to be looked at.
SELECT queue, lane, queue_name, task, partition, running, is_wrong
FROM (
    SELECT
        lanes.queue, lanes.lane, queues.name AS queue_name, lanes.task, lanes.partition, lanes.running,
        CASE
            WHEN lanes.ready = 0
            THEN lanes.turn IS NOT NULL OR lanes.rank IS NOT NULL OR lanes.due_at IS NOT NULL OR lanes.id IS NOT NULL
                OR lanes.startable <> 0 OR lanes.opens_at IS NOT NULL
            ELSE lanes.turn IS NULL
                OR lanes.startable NOT BETWEEN 0 AND min(lanes.ready, 1000)
                OR (lanes.rank, lanes.due_at, lanes.id) IS NOT (
                    SELECT jobs.rank, jobs.due_at, jobs.id
                    FROM flexiq_jobs AS jobs INDEXED BY flexiq_jobs_ready
                    WHERE jobs.lane = lanes.lane
                      AND jobs.state = 1
                    ORDER BY jobs.rank, jobs.due_at, jobs.id
                    LIMIT 1
                )
        END AS is_wrong,
        lanes.ready > 0
            AND lanes.startable = 0
            AND lanes.opens_at IS NULL
            AND (partitioned.reopens IS NULL OR lanes.partition <= partitioned.reopens) AS may_be_forgotten
    FROM flexiq_lanes AS lanes
    JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
    JOIN flexiq_partitioned AS partitioned ON partitioned.queue = lanes.queue AND partitioned.task = lanes.task
    WHERE lanes.partition <> ''
)
WHERE is_wrong
   OR may_be_forgotten
