SELECT
    lanes.ready, lanes.running, lanes.startable, coalesce(lanes.turn, 2 * partitioned.served),
    lanes.scheduled + lanes.ready + lanes.running + lanes.succeeded + lanes.dead + lanes.cancelled + lanes.expired
FROM flexiq_lanes AS lanes
JOIN flexiq_partitioned AS partitioned ON partitioned.queue = lanes.queue AND partitioned.task = lanes.task
WHERE lanes.lane = ?1
