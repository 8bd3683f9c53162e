SELECT DISTINCT lanes.queue, queues.name, lanes.task
FROM flexiq_lanes AS lanes
JOIN flexiq_queues AS queues ON queues.queue = lanes.queue
WHERE lanes.partition <> ''
  AND NOT EXISTS (
      SELECT 1
      FROM flexiq_partitioned AS partitioned
      WHERE partitioned.queue = lanes.queue
        AND partitioned.task = lanes.task
  )
LIMIT ?1
